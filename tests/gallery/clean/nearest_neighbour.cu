// nearest_neighbour: distance of each record to a place, records as a structure; a 2D grid of 1D blocks
// launch: distances; grid 2 2; block 32
// args: out out float32[110] nan; in record float32[110,2] uniform(-90,90); n int32 110; lat float32 30; lng float32 -60
typedef struct latLong { float lat, lng; } LatLong;

extern "C" __global__ void distances(float* out, LatLong* record, int n, float lat, float lng) {
    int id = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
    if (id < n) {
        LatLong* here = record + id;
        out[id] = (float)sqrt((lat - here->lat) * (lat - here->lat) + (lng - here->lng) * (lng - here->lng));
    }
}
