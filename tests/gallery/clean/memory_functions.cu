// memory_functions: memcpy and memset of a structure in local memory
// launch: records; grid 1; block 32
// args: out out int32[32,6] -1; in in int32[32,6] integers(0,100)
struct Record {
    int values[6];
};

extern "C" __global__ void records(Record* out, const Record* in) {
    Record mine;
    memset(&mine, 0, sizeof mine);
    memcpy(mine.values + threadIdx.x % 4, in[threadIdx.x].values, 2 * sizeof(int));
    out[threadIdx.x] = mine;
}
