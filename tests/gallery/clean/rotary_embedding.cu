// rotary_embedding: pairs of a row turned by an angle that grows with the position; float2 accesses, sincosf
// launch: rotate; grid 4 3; block 8
// args: out out float32[4,3,16] nan; in in float32[4,3,16] normal; theta float32 10000
extern "C" __global__ void rotate(float2* out, const float2* in, float theta) {
    int position = blockIdx.x, head = blockIdx.y, pair = threadIdx.x, pairs = blockDim.x;
    float frequency = powf(theta, -2.0f * pair / (2 * pairs)), s, c;
    sincosf(position * frequency, &s, &c);
    int i = (position * gridDim.y + head) * pairs + pair;
    float2 x = in[i];
    out[i] = make_float2(x.x * c - x.y * s, x.x * s + x.y * c);
}
