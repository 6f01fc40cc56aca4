/* SPDX-License-Identifier: Apache-2.0
 * The runtime's calls: errors, devices, launches; and its state.
 * HYPEROPT_EMULATOR_DEVICES (1), HYPEROPT_EMULATOR_MEMORY_MB of each (1024),
 * HYPEROPT_EMULATOR_PROCESSORS of each (16), HYPEROPT_EMULATOR_SM (80, 75, 90:
 * its shared memory, not its instructions).
 * HYPEROPT_EMULATOR_FAULT=n: the n-th kernel of the process ends the context, as an illegal address
 * does: from there on nothing runs and calls answer so. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace ho_emu_runtime;

namespace ho_emu_runtime
{

runtime &the(void)
{
    static runtime *r = new runtime(); /* outlives every static destructor */
    return *r;
}

thread_state &mine(void)
{
    static thread_local thread_state state = {cudaSuccess, 0, 0};
    return state;
}

cudaError_t done(cudaError_t error)
{
    if (error != cudaSuccess) {
        mine().last_error = error;
    }
    return error;
}

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoul(text, NULL, 10) : otherwise;
}

cudaError_t ended(void)
{
    return done(the().lost ? cudaErrorIllegalAddress : cudaSuccess);
}

int device_count(void)
{
    return (int)setting("HYPEROPT_EMULATOR_DEVICES", 1);
}

static int device_sm(void)
{
    return (int)setting("HYPEROPT_EMULATOR_SM", 80);
}

/* Shared memory that a block of the device may have. */
static int shared_bytes(void)
{
    return (device_sm() < 80 ? 64 : device_sm() < 90 ? 163 : 227) << 10;
}

size_t device_bytes(void)
{
    return setting("HYPEROPT_EMULATOR_MEMORY_MB", 1024) << 20;
}

} // namespace ho_emu_runtime

/* Counts a kernel that is about to run; false: it cannot. */
static bool kernel_may_run(void)
{
    static const size_t fault = setting("HYPEROPT_EMULATOR_FAULT", 0);
    the().lost = the().lost || ++the().kernels == fault;
    return !the().lost;
}

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = mine().last_error;
    mine().last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return mine().last_error;
}

#define ERRORS(X)                                                                                  \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for the device")              \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during "        \
                                         "capture")

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define NAME(code, text)                                                                           \
    case code:                                                                                     \
        return #code;
        ERRORS(NAME)
#undef NAME
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define TEXT(code, text)                                                                           \
    case code:                                                                                     \
        return text;
        ERRORS(TEXT)
#undef TEXT
    }
    return "unrecognized error code";
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    mine().device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = mine().device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "CPU emulation");
    prop->uuid.bytes[15] = (char)device;
    prop->totalGlobalMem = device_bytes();
    prop->sharedMemPerBlock = 48 << 10;
    prop->sharedMemPerBlockOptin = (size_t)shared_bytes();
    prop->sharedMemPerMultiprocessor = (size_t)shared_bytes() + (device_sm() < 80 ? 0 : 1 << 10);
    prop->major = device_sm() / 10;
    prop->minor = device_sm() % 10;
    prop->multiProcessorCount = (int)setting("HYPEROPT_EMULATOR_PROCESSORS", 16);
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    *value = attribute == cudaDevAttrMemoryPoolsSupported;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    const guard g(the().lock);
    if (forbidden()) {
        return done(cudaErrorStreamCaptureUnsupported);
    }
    flush_all();
    trim_all();
    return ended();
}

/* ---- launches ---- */

cudaError_t ho_emulator_function_attribute(const void *kernel, cudaFuncAttribute attribute,
                                           int value)
{
    const guard g(the().lock);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > shared_bytes()) {
            return done(cudaErrorInvalidValue);
        }
        the().shared_limit[kernel] = value;
    }
    return cudaSuccess;
}

cudaError_t ho_emulator_image(int sm)
{
    return done(sm <= device_sm() ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

void ho_emu::enqueue(launch &&l, ho_emulator_stream *stream)
{
    const guard g(the().lock);
    const auto limit = the().shared_limit.find(l.kernel);
    const size_t shared = limit == the().shared_limit.end() ? 48u << 10 : (size_t)limit->second;
    const dim3 b = l.block, d = l.grid;
    const bool fits = (size_t)b.x * b.y * b.z >= 1 && (size_t)b.x * b.y * b.z <= 1024 &&
                      b.z <= 64 && d.x >= 1 && d.x <= 0x7fffffffu && d.y >= 1 && d.y <= 65535 &&
                      d.z >= 1 && d.z <= 65535;
    if (!fits) {
        done(cudaErrorInvalidConfiguration);
    } else if (l.shared_bytes > shared) {
        done(cudaErrorInvalidValue);
    } else {
        done(put(stream, [held = std::move(l)] {
            if (kernel_may_run()) {
                execute(held);
            }
        }));
    }
}
