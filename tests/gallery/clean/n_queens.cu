// n_queens: backtracking with bit masks and a stack of its own in local memory, one first row per thread
// launch: queens; grid 1; block 32
// args: out solutions int32[8] -1; n int32 8
extern "C" __global__ void queens(int* solutions, int n) {
    int first = threadIdx.x;
    if (first >= n) return;
    unsigned stack[16][3];
    unsigned all = (1u << n) - 1, count = 0;
    int depth = 1;
    unsigned columns = 1u << first, left = columns << 1, right = columns >> 1, open = all & ~(columns | left | right);
    while (true) {
        if (depth == n) count++, open = 0;
        if (open) {
            unsigned bit = open & -open;
            stack[depth][0] = columns, stack[depth][1] = left << 16 | right, stack[depth][2] = open ^ bit;
            columns |= bit, left = ((left | bit) << 1) & 0xffff, right = (right | bit) >> 1, depth++;
            open = all & ~(columns | left | right);
        } else {
            if (--depth < 1) break;
            columns = stack[depth][0], left = stack[depth][1] >> 16, right = stack[depth][1] & 0xffff, open = stack[depth][2];
        }
    }
    solutions[first] = count;
}
