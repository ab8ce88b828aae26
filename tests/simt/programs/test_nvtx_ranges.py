"""Ranges and marks of NVTX build from either header, and do nothing."""

SOURCE = """
#include <cstdio>
#include <nvToolsExt.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvtx3.hpp>

__global__ void twice(int *x) { x[threadIdx.x] *= 2; }

static void work(int *x) {
    NVTX3_FUNC_RANGE();
    nvtx3::scoped_range range{"kernel", nvtx3::rgb{0, 255, 0}, nvtx3::payload{7}};
    nvtx3::unique_range moved{nvtx3::event_attributes{"launch"}};
    twice<<<1, 32>>>(x);
}

int main() {
    int *x;
    cudaMallocManaged(&x, 32 * sizeof(int));
    nvtxRangePushA("set");
    for (int i = 0; i < 32; i++)
        x[i] = i;
    nvtxRangePop();
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff00;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "launch";
    nvtxRangePushEx(&event);
    work(x);
    nvtxRangePop();
    nvtxRangeId_t wait = nvtxRangeStart("wait");
    cudaDeviceSynchronize();
    nvtxRangeEnd(wait);
    nvtxMark("done");
    printf("%d %d\\n", x[1], x[31]);
    cudaFree(x);
}
"""


def test_ranges_change_nothing(built):
    assert built(SOURCE, "-lnvToolsExt").run() == ("2 62\n", "", 0)
