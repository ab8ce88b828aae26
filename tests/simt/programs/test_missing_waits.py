"""`labkit check` finds what two streams, or a stream and the host, do to the same memory without a wait."""

import re

import pytest

SOURCE = r"""
#include <cstdio>
#include <cstring>
#include <vector>
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
const int n = 4096;
__global__ void put(int *a) { a[INDEX] = INDEX; } //@ put
__global__ void get(const int *a, int *b) { b[INDEX] = a[INDEX]; } //@ get
__global__ void bump(int *a) { atomicAdd(a, 1); }
__global__ void signal(int *a, volatile int *flag) {
    a[INDEX] = 7; __threadfence_system(); *flag = 1;
}
static void callback(void *p) { ((int *)p)[0]++; }
static void old_callback(cudaStream_t, cudaError_t, void *p) { ((int *)p)[0]++; }

int main(int argc, char **argv) {
    auto is = [&](const char *name) { return !strcmp(argv[1], name); };
    int *a, *b, *pinned, *managed, *more; long sum = 0;
    std::vector<int> h(n, 3), k(n);
    cudaStream_t s, t, p, q; cudaEvent_t e, f;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
    cudaStreamCreate(&p); cudaStreamCreate(&q); cudaEventCreate(&e); cudaEventCreate(&f);
    cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4);
    cudaMallocHost(&pinned, n * 4); cudaMallocHost(&more, n * 4);
    cudaMallocManaged(&managed, n * 4);
    memset(pinned, 0, n * 4); memset(more, 0, n * 4); memset(managed, 0, n * 4);
    cudaMemcpy(a, h.data(), n * 4, cudaMemcpyHostToDevice); cudaMemcpy(b, a, n * 4, cudaMemcpyDeviceToDevice);
    cudaDeviceSynchronize();

    // ---- wrong
    if (is("kernels")) { put<<<16, 256, 0, s>>>(a); get<<<16, 256, 0, t>>>(a, b); }
    if (is("blocking")) { put<<<16, 256, 0, p>>>(a); get<<<16, 256, 0, q>>>(a, b); }
    if (is("overwrite")) {
        get<<<16, 256, 0, s>>>(a, b);
        put<<<16, 256, 0, t>>>(a);
    }
    if (is("copy")) {
        put<<<16, 256, 0, s>>>(a);
        cudaMemcpyAsync(pinned, a, n * 4, cudaMemcpyDeviceToHost, t); //@ copy
    }
    if (is("memset")) {
        cudaMemsetAsync(a, 0, n * 4, s); //@ memset
        get<<<16, 256, 0, t>>>(a, b);
    }
    if (is("legacy")) { put<<<16, 256>>>(a); get<<<16, 256, 0, t>>>(a, b); }
    if (is("into-legacy")) { put<<<16, 256, 0, s>>>(a); get<<<16, 256>>>(a, b); }
    if (is("plain-memset")) {
        cudaMemset(a, 0, n * 4); //@ plain-memset
        get<<<16, 256, 0, s>>>(a, b);
    }
    if (is("cudaMemcpy")) {
        put<<<16, 256, 0, s>>>(a);
        cudaMemcpy(h.data(), a, n * 4, cudaMemcpyDeviceToHost); //@ cudaMemcpy
    }
    if (is("early-event")) {
        cudaEventRecord(e, s); put<<<16, 256, 0, s>>>(a);
        cudaStreamWaitEvent(t, e, 0); get<<<16, 256, 0, t>>>(a, b);
    }
    if (is("wrong-stream")) {
        put<<<16, 256, 0, s>>>(a); cudaStreamSynchronize(t);
        get<<<16, 256, 0, t>>>(a, b);
    }
    if (is("overlap")) { put<<<9, 256, 0, s>>>(a); get<<<8, 256, 0, t>>>(a + n / 2, b); }
    if (is("pinned-read")) {
        put<<<16, 256, 0, s>>>(a);
        cudaMemcpyAsync(pinned, a, n * 4, cudaMemcpyDeviceToHost, s); //@ to-pinned
        sum += pinned[5]; //@ pinned-read
    }
    if (is("pinned-write")) {
        cudaMemcpyAsync(a, pinned, n * 4, cudaMemcpyHostToDevice, s); //@ from-pinned
        pinned[5] = 1; //@ pinned-write
    }
    if (is("mapped")) {
        put<<<16, 256>>>(pinned);
        sum += pinned[n - 1]; //@ mapped
    }
    if (is("managed")) {
        put<<<16, 256>>>(managed);
        sum += managed[0]; //@ managed
    }
    if (is("managed-write")) {
        get<<<16, 256>>>(managed, b);
        managed[9] = 1; //@ managed-write
    }

    // ---- clean
    if (is("chunks"))
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < 4; i++) { // 1,000 elements: chunks end within pages
                cudaStream_t own = i % 2 ? s : t; int at = 1000 * i;
                cudaMemcpyAsync(a + at, pinned + at, 4000, cudaMemcpyHostToDevice, own);
                get<<<4, 250, 0, own>>>(a + at, b + at);
                cudaMemcpyAsync(more + at, b + at, 4000, cudaMemcpyDeviceToHost, own);
            }
    if (is("chunk-by-chunk")) {
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 1000; j++) pinned[1000 * i + j] = j;
            cudaMemcpyAsync(a + 1000 * i, pinned + 1000 * i, 4000, cudaMemcpyHostToDevice, i % 2 ? s : t);
        }
        cudaDeviceSynchronize(); sum += pinned[0];
    }
    if (is("events")) {
        put<<<16, 256, 0, s>>>(a); cudaEventRecord(e, s);
        cudaStreamWaitEvent(t, e, 0); get<<<16, 256, 0, t>>>(a, b); cudaEventRecord(f, t);
        cudaStreamWaitEvent(s, f, 0); put<<<16, 256, 0, s>>>(a);
        cudaEventRecord(e, s); cudaStreamWaitEvent(p, e, 0); get<<<16, 256, 0, p>>>(a, b);
    }
    if (is("double-buffer")) {
        cudaEvent_t full[2], empty[2]; int *buffers[2] = {a, b}, *host[2] = {pinned, more};
        for (int i = 0; i < 2; i++) cudaEventCreate(&full[i]), cudaEventCreate(&empty[i]);
        for (int i = 0; i < 6; i++) {
            int w = i % 2;
            if (i > 1) cudaEventSynchronize(full[w]);
            for (int j = 0; j < n; j++) host[w][j] = i;
            if (i > 1) cudaStreamWaitEvent(s, empty[w], 0);
            cudaMemcpyAsync(buffers[w], host[w], n * 4, cudaMemcpyHostToDevice, s);
            cudaEventRecord(full[w], s); cudaStreamWaitEvent(t, full[w], 0);
            get<<<16, 256, 0, t>>>(buffers[w], managed); cudaEventRecord(empty[w], t);
        }
        cudaStreamSynchronize(t); sum += managed[3];
    }
    if (is("default")) {
        put<<<16, 256, 0, p>>>(a); get<<<16, 256>>>(a, b); put<<<16, 256, 0, q>>>(a);
        cudaMemcpy(h.data(), a, n * 4, cudaMemcpyDeviceToHost);
    }
    if (is("memcpy")) {
        put<<<16, 256>>>(pinned); cudaMemcpy(h.data(), a, 4, cudaMemcpyDeviceToHost); sum += pinned[3];
        cudaMemcpy(a, h.data(), n * 4, cudaMemcpyHostToDevice); get<<<16, 256, 0, s>>>(a, b);
    }
    if (is("pageable")) {
        put<<<16, 256, 0, s>>>(a); cudaMemcpyAsync(h.data(), a, n * 4, cudaMemcpyDeviceToHost, s);
        sum += h[3];
        put<<<16, 256, 0, t>>>(a);
    }
    if (is("waits")) {
        put<<<16, 256>>>(managed); cudaDeviceSynchronize(); sum += managed[1];
        put<<<16, 256, 0, s>>>(managed); cudaStreamSynchronize(s); managed[1] = 5;
        put<<<16, 256, 0, s>>>(pinned); cudaEventRecord(e, s); cudaEventSynchronize(e); sum += pinned[1];
        put<<<16, 256, 0, s>>>(pinned); cudaEventRecord(e, s); while (cudaEventQuery(e)) ; sum += pinned[1];
        put<<<16, 256, 0, s>>>(pinned); while (cudaStreamQuery(s)) ; pinned[1] = 2;
        put<<<16, 256, 0, s>>>(a); cudaStreamSynchronize(s); get<<<16, 256, 0, t>>>(a, b);
    }
    if (is("free")) {
        int *c; cudaMalloc(&c, 4); put<<<16, 256, 0, s>>>(managed); cudaFree(c);
        sum += managed[1];
    }
    if (is("reads")) {
        get<<<16, 256, 0, s>>>(pinned, a); get<<<16, 256, 0, t>>>(pinned, b);
        sum += pinned[1];
    }
    if (is("atomics")) { bump<<<1, 32, 0, s>>>(a); bump<<<1, 32, 0, t>>>(a); }
    if (is("flag")) {
        signal<<<16, 256, 0, s>>>(pinned, more); while (!*(volatile int *)more) ;
        sum += pinned[1];
    }
    if (is("callbacks")) {
        put<<<16, 256, 0, s>>>(pinned); cudaLaunchHostFunc(s, callback, pinned);
        put<<<16, 256, 0, t>>>(managed); cudaStreamAddCallback(t, old_callback, managed, 0);
    }
    if (is("graph")) {
        cudaGraph_t graph; cudaGraphExec_t whole;
        cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
        cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);
        put<<<16, 256, 0, s>>>(a); put<<<16, 256, 0, t>>>(b);
        cudaEventRecord(f, t); cudaStreamWaitEvent(s, f, 0); get<<<16, 256, 0, s>>>(a, managed);
        cudaStreamEndCapture(s, &graph); cudaGraphInstantiate(&whole, graph, 0);
        cudaGraphLaunch(whole, s); cudaGraphLaunch(whole, s); cudaStreamSynchronize(s); sum += managed[1];
        cudaGraphExecDestroy(whole); cudaGraphDestroy(graph);
    }
    if (is("new-streams"))
        for (int i = 0; i < 3; i++) {
            cudaStream_t u; cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking);
            put<<<16, 256, 0, u>>>(a); cudaStreamSynchronize(u); cudaStreamDestroy(u);
        }
    cudaDeviceSynchronize();
    printf("%ld %d\n", sum, pinned[0]);
    cudaStreamDestroy(s); cudaStreamDestroy(t); cudaStreamDestroy(p); cudaStreamDestroy(q);
    cudaEventDestroy(e); cudaEventDestroy(f);
    cudaFree(a); cudaFree(b); cudaFreeHost(pinned); cudaFreeHost(more); cudaFree(managed);
}
"""
CLEAN = re.findall(r'is\("([^"]+)"\)', SOURCE.partition("// ---- clean")[2])
WRONG = {  # the lines of both sides: names of marks
    "kernels": ("get", "put"),
    "blocking": ("get", "put"),
    "overwrite": ("put", "get"),
    "copy": ("copy", "put"),
    "memset": ("get", "memset"),
    "legacy": ("get", "put"),
    "into-legacy": ("get", "put"),
    "plain-memset": ("get", "plain-memset"),
    "cudaMemcpy": ("cudaMemcpy", "put"),
    "early-event": ("get", "put"),
    "wrong-stream": ("get", "put"),
    "overlap": ("get", "put"),
    "pinned-read": ("pinned-read", "to-pinned"),
    "pinned-write": ("pinned-write", "from-pinned"),
    "mapped": ("mapped", "put"),
    "managed": ("managed", "put"),
    "managed-write": ("managed-write", "get"),
}


@pytest.fixture(scope="module")
def program(built):
    """Build the program of all cases."""
    return built(SOURCE)


def line(mark):
    """Return the number of the line with a mark."""
    (found,) = (i for i, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"//@ {mark}"))
    return found


@pytest.mark.parametrize("case", WRONG)
def test_a_missing_wait_is_told_once_with_both_lines(program, case):
    _, told, _ = program.run(case, LABKIT_PROGRAM="check")
    first, second = map(line, WRONG[case])
    found = [each for each in told.splitlines() if "missing wait" in each]
    assert len(found) == 1, told
    assert re.search(rf"missing wait: \S*main\.cu:{first}: .* at \S*main\.cu:{second}\b", found[0]), told
    assert "labkit check: 1 mistake" in told


@pytest.mark.parametrize("case", CLEAN)
def test_what_is_waited_for_is_no_mistake(program, case):
    plain, _, _ = program.run(case)
    out, told, code = program.run(case, LABKIT_PROGRAM="check")
    assert "labkit check: no mistake found" in told, told
    assert (out, code) == (plain, 0)
