// A point in a stream is known to have been passed although what was enqueued later never ends by itself: a kernel that spins until
// the host, or another stream, has seen the point. The library lets several launches share one sign of their end; this is what
// must not become visible. Each way to know the point is tried behind 1 to 40 launches.
#include "cases.h"

#include <unistd.h>

__global__ void add_one(int* value) { ++*value; }

__global__ void spin(const volatile int* flag) {
  while (!*flag) __threadfence_system();
}

__global__ void raise_flag(volatile int* flag) {
  *flag = 1;
  __threadfence_system();
}

static void raise_by_host(void* flag) { *static_cast<volatile int*>(flag) = 1; }

struct Spinner {
  cudaStream_t stream;
  cudaEvent_t point;
  int *value, *flag;
  Spinner() {
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&point, cudaEventDisableTiming));
    OK(cudaMallocHost(&value, sizeof *value));
    OK(cudaMallocHost(&flag, sizeof *flag));
  }
  // Some launches, the point, and the kernel that must not be waited for.
  void start(int launches) {
    *value = *flag = 0;
    for (int i = 0; i < launches; i++) add_one<<<1, 1, 0, stream>>>(value);
    OK(cudaEventRecord(point, stream));
    spin<<<1, 1, 0, stream>>>(flag);
    OK(cudaGetLastError());
  }
  // The same behind whatever the stream does already.
  void start_behind() {
    add_one<<<1, 1, 0, stream>>>(value);
    OK(cudaEventRecord(point, stream));
    spin<<<1, 1, 0, stream>>>(flag);
    OK(cudaGetLastError());
  }
  ~Spinner() {
    OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(point));
    OK(cudaFreeHost(value));
    OK(cudaFreeHost(flag));
  }
};

// `see` returns, or has something enqueued that raises the flag, once the point has been passed.
template <typename See>
static void each(See see) {
  Spinner spinner;
  for (int launches = 1; launches <= 40; launches += launches < 20 ? 1 : 5) {
    spinner.start(launches);
    see(spinner);
    OK(cudaStreamSynchronize(spinner.stream));
    if (*spinner.value != launches) fail("%d of %d launches", *spinner.value, launches);
  }
}

CASE(the_host_waits_for_the_event) {
  each([](Spinner& spinner) {
    OK(cudaEventSynchronize(spinner.point));
    GIVES(cudaErrorNotReady, cudaStreamQuery(spinner.stream));
    *(volatile int*)spinner.flag = 1;
  });
}

CASE(the_host_asks_for_the_event) {
  each([](Spinner& spinner) {
    while (cudaEventQuery(spinner.point) == cudaErrorNotReady) continue;
    *(volatile int*)spinner.flag = 1;
  });
}

CASE(a_kernel_of_another_stream_waits_for_the_event) {
  cudaStream_t other;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  each([other](Spinner& spinner) {
    OK(cudaStreamWaitEvent(other, spinner.point, 0));
    raise_flag<<<1, 1, 0, other>>>(spinner.flag);
  });
  OK(cudaStreamDestroy(other));
}

CASE(a_copy_of_another_stream_waits_for_the_event) {
  cudaStream_t other;
  int one = 1, *device;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaMalloc(&device, sizeof *device));
  OK(cudaMemcpy(device, &one, sizeof one, cudaMemcpyHostToDevice));
  each([=](Spinner& spinner) {
    OK(cudaStreamWaitEvent(other, spinner.point, 0));
    OK(cudaMemcpyAsync(spinner.flag, device, sizeof *device, cudaMemcpyDeviceToHost, other));
  });
  OK(cudaFree(device));
  OK(cudaStreamDestroy(other));
}

CASE(a_host_function_of_another_stream_waits_for_the_event) {
  cudaStream_t other;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  each([other](Spinner& spinner) {
    OK(cudaStreamWaitEvent(other, spinner.point, 0));
    OK(cudaLaunchHostFunc(other, raise_by_host, spinner.flag));
  });
  OK(cudaStreamDestroy(other));
}

// The same with nothing but order inside the stream: the spinning kernel stands behind the function.
CASE(a_host_function_between_the_kernels) {
  each([](Spinner& spinner) {
    *(volatile int*)spinner.flag = 1;
    OK(cudaStreamSynchronize(spinner.stream));
    *spinner.flag = 0;
    add_one<<<1, 1, 0, spinner.stream>>>(spinner.value);
    OK(cudaLaunchHostFunc(spinner.stream, raise_by_host, spinner.flag));
    spin<<<1, 1, 0, spinner.stream>>>(spinner.flag);
    OK(cudaStreamSynchronize(spinner.stream));
    --*spinner.value;
  });
}

// Both streams have been on one hardware queue. The second waits for a point of the first that is not passed yet: to go on in that queue would be to
// stand behind what the first does later, which waits for the second.
CASE(two_streams_that_had_the_same_hardware_queue) {
  cudaStream_t other;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Spinner spinner;
  int* gate;
  OK(cudaMallocHost(&gate, sizeof *gate));
  for (int round = 0; round < 5; round++) {
    *spinner.value = *spinner.flag = *gate = 0;
    add_one<<<1, 1, 0, other>>>(spinner.value);
    OK(cudaStreamSynchronize(other));
    spin<<<1, 1, 0, spinner.stream>>>(gate);
    spinner.start_behind();
    OK(cudaStreamWaitEvent(other, spinner.point, 0));
    raise_flag<<<1, 1, 0, other>>>(spinner.flag);
    *(volatile int*)gate = 1;
    OK(cudaStreamSynchronize(spinner.stream));
    EXPECT(*spinner.value == 2);
  }
  OK(cudaFreeHost(gate));
  OK(cudaStreamDestroy(other));
}

// A stream is waited for, and another, which may share its hardware queue, spins.
CASE(work_of_another_stream_is_not_waited_for) {
  cudaStream_t other;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Spinner spinner;
  for (int launches = 1; launches <= 20; launches++) {
    *spinner.value = *spinner.flag = 0;
    for (int i = 0; i < launches; i++) add_one<<<1, 1, 0, spinner.stream>>>(spinner.value);
    spin<<<1, 1, 0, other>>>(spinner.flag);
    OK(cudaStreamSynchronize(spinner.stream));
    EXPECT(*spinner.value == launches);
    *(volatile int*)spinner.flag = 1;
    OK(cudaStreamSynchronize(other));
  }
  OK(cudaStreamDestroy(other));
}

// Nobody asks: what the launches hold comes back all the same, and the device ends idle.
CASE(launches_nobody_asks_about) {
  Spinner spinner;
  *spinner.value = 0;
  for (int i = 0; i < 10007; i++) add_one<<<1, 1, 0, spinner.stream>>>(spinner.value);
  OK(cudaDeviceSynchronize());
  EXPECT(*spinner.value == 10007);
}

int main(int argc, char** argv) {
  // A wait that never ends is a failure.
  alarm(100);
  return run_cases(argc, argv);
}
