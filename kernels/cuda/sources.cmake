# The CUDA backend's sources by name: kernels/cuda and tests/emulator read this.
# Money is compiled without contraction (--fmad=false), as on the host; the gradient step, whose
# results are bounded and not equal, with it.
set(cuda_exact_sources backtest_kernels.cu experience.cu epoch.cu ppo_rollout.cu ppo_update.cu)
set(cuda_other_sources backtest.cu cohort.cu cohort_memory.cu curiosity.cu dense.cu device.cu
    device_pool.cu lane.cu learn.cu learn_atoms.cu learn_rows.cu market.cu noise.cu ops.cu policy.cu priority.cu
    trace_rows.cu update.cu)
set(cuda_fused_sources fused_few.cu fused_forward.cu fused_gradient.cu fused_td.cu) # sm_90a
