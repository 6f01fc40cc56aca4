/* SPDX-License-Identifier: Apache-2.0
 * The forms of agents that GPU tests run over: each part alone, and combinations. */
#ifndef HO_TEST_GPU_FORMS_H
#define HO_TEST_GPU_FORMS_H

#include "agents/world.h"
#include "gpu/sizes.h"

typedef struct form {
    const char *name;
    int plain; /* neither dueling nor double */
    int branching, noisy, atoms, replay, exposure5, bf16;
    int fp8;    /* with bf16: acts in fp8 */
    int n_step; /* 0: the default */
    int mse;
    double count_bonus;
    int curiosity;
    int ppo, separate; /* branching: PPO's 5 + 3 + 3 heads */
    int reference;     /* the shape that sm_90a has fused kernels for; too large for the emulator */
    int sample;        /* of the forms that stand for all where time is short: under the emulator */
} form;

static const form forms[] = {
    {.name = "plain", .plain = 1, .n_step = 1, .mse = 1},
    {.name = "n-step, count bonus", .n_step = 5, .count_bonus = 0.5},
    {.name = "curiosity", .curiosity = 1},
    {.name = "per", .replay = HO_REPLAY_PER},
    {.name = "per plain exposure5",
     .replay = HO_REPLAY_PER,
     .plain = 1,
     .exposure5 = 1,
     .sample = 1},
    {.name = "per_rank", .replay = HO_REPLAY_PER_RANK},
    {.name = "branching", .branching = 1, .count_bonus = 0.5},
    {.name = "branching plain per",
     .branching = 1,
     .plain = 1,
     .replay = HO_REPLAY_PER,
     .sample = 1},
    {.name = "noisy", .noisy = 1},
    {.name = "noisy plain per", .noisy = 1, .plain = 1, .replay = HO_REPLAY_PER},
    {.name = "noisy branching", .noisy = 1, .branching = 1},
    {.name = "c51", .atoms = 11},
    {.name = "c51 plain", .atoms = 33, .plain = 1},
    {.name = "c51 branching per", .atoms = 51, .branching = 1, .replay = HO_REPLAY_PER},
    {.name = "all",
     .atoms = 51,
     .branching = 1,
     .noisy = 1,
     .replay = HO_REPLAY_PER_RANK,
     .sample = 1},
    {.name = "per bf16", .replay = HO_REPLAY_PER, .bf16 = 1},
    {.name = "branching c51 bf16", .atoms = 51, .branching = 1, .bf16 = 1},
    {.name = "noisy per_rank bf16",
     .noisy = 1,
     .replay = HO_REPLAY_PER_RANK,
     .bf16 = 1,
     .sample = 1},
    {.name = "fp8", .bf16 = 1, .fp8 = 1, .sample = 1},
    {.name = "fp8 noisy per", .noisy = 1, .replay = HO_REPLAY_PER, .bf16 = 1, .fp8 = 1},
    {.name = "fp8 branching c51", .atoms = 51, .branching = 1, .bf16 = 1, .fp8 = 1},
    {.name = "fp8 fused", .bf16 = 1, .fp8 = 1, .reference = 1},
    {.name = "uniform fused", .bf16 = 1, .reference = 1},
    {.name = "per fused", .replay = HO_REPLAY_PER, .bf16 = 1, .reference = 1},
    {.name = "per_rank fused", .replay = HO_REPLAY_PER_RANK, .bf16 = 1, .reference = 1},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Without what makes a form of DQN. */
static const form ppo_forms[] = {
    {.name = "ppo", .ppo = 1},
    {.name = "ppo separate", .ppo = 1, .separate = 1},
    {.name = "ppo exposure5 bf16", .ppo = 1, .exposure5 = 1, .bf16 = 1, .sample = 1},
    {.name = "ppo factored separate, curiosity",
     .ppo = 1,
     .branching = 1,
     .separate = 1,
     .curiosity = 1,
     .sample = 1},
    {.name = "ppo fp8", .ppo = 1, .bf16 = 1, .fp8 = 1, .sample = 1},
    {.name = "ppo factored separate bf16", .ppo = 1, .branching = 1, .separate = 1, .bf16 = 1},
};
enum { PPO_FORMS = sizeof ppo_forms / sizeof ppo_forms[0], ALL_FORMS = FORMS + PPO_FORMS };

static inline const form *form_at(int i)
{
    return i < FORMS ? &forms[i] : &ppo_forms[i - FORMS];
}

static inline void form_key(const form *f, ho_cohort_key *key)
{
    key->dueling = !f->plain;
    key->branching = f->branching && !f->ppo;
    key->ppo_factored = f->branching && f->ppo;
    key->ppo_separate = f->separate;
    key->curiosity = f->curiosity;
    key->noisy = f->noisy;
    key->atoms = f->atoms;
    key->replay = f->replay;
    key->action_set = f->exposure5 ? HO_ACTIONS_EXPOSURE5 : HO_ACTIONS_FULL45;
    key->precision = f->fp8 ? HO_PRECISION_FP8 : f->bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
    if (f->reference) {
        key->hidden1 = key->hidden2 = 256;
        key->head = 128;
        key->batch = 128;
    }
}

static inline ho_device_info gpu_info(void)
{
    ho_backend *b = NULL;
    ho_device_info info = {.sm = 0, .image = 0};
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    if (ho_backend_open(&b, &options, NULL) == HO_OK) {
        (void)ho_backend_info(b, &info, NULL);
    }
    ho_backend_close(&b);
    return info;
}

/* 1: left out here, to save time; or what compute capability 7.5 refuses: fp8, and 1,485 outputs of
 * 8 states in 64 KB of shared memory. */
static inline int form_skipped(const form *f)
{
    const int large = f->atoms > 32 && !f->branching && !f->ppo;
    const ho_device_info gpu = gpu_info();
    return (f->reference && gpu_size(0, 1)) || (large && gpu.sm < 80) || (f->fp8 && gpu.image < 80);
}

static inline void form_agent(const form *f, ho_agent_config *agent)
{
    agent->double_q = !f->plain;
    agent->n_step = f->n_step > 0 ? f->n_step : agent->n_step;
    agent->huber_delta = f->mse ? 0.0 : agent->huber_delta;
    agent->count_bonus = f->count_bonus;
}

#endif
