// embedding_backward: gradients of token and position embeddings, scattered by atomicAdd
// launch: backward; grid 3; block 128
// args: out dtoken float32[11,10] 0; out dposition float32[6,10] 0; in dout float32[4,6,10] normal; in token int32[4,6] integers(0,11); B int32 4; T int32 6; C int32 10
extern "C" __global__ void backward(float* dtoken, float* dposition, const float* dout, const int* token, int B, int T, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < B * T * C) {
        int bt = i / C, t = bt % T, c = i % C;
        atomicAdd(dtoken + token[bt] * C + c, dout[i]);
        atomicAdd(dposition + t * C + c, dout[i]);
    }
}
