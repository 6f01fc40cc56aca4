/* SPDX-License-Identifier: Apache-2.0
 * See outbox.h. */
#include "worker/outbox.h"

#include <stdlib.h>
#include <string.h>

enum { GONE = 1024 }; /* a repeated order is known for this many trials */

struct item {
    struct item *next;
    ho_outbox_label label;
    zmsg_t *bytes;
    bool sent;
};

/* 1. tail points to the last link.  2. unsent is the first item not sent, or NULL; behind it
 * nothing is sent. */
struct ho_outbox {
    struct item *head, **tail, *unsent;
    ho_held_trial *held;
    int held_count, held_room;
    ho_held_trial gone[GONE]; /* the last trials forgotten, in a ring */
    unsigned gone_count;
    int checkpoint_parts; /* items that are chunks and not kept */
};

ho_outbox *ho_outbox_create(void)
{
    ho_outbox *outbox = calloc(1, sizeof *outbox);
    if (outbox) {
        outbox->tail = &outbox->head;
    }
    return outbox;
}

static bool is_checkpoint_part(const ho_outbox_label *label)
{
    return label->type == HO_MSG_CHUNK && !label->keep;
}

/* Unlinks the item at *link. */
static void remove_item(ho_outbox *outbox, struct item **link)
{
    struct item *item = *link;
    if (outbox->unsent == item) {
        outbox->unsent = item->next;
    }
    if (outbox->tail == &item->next) {
        outbox->tail = link;
    }
    *link = item->next;
    outbox->checkpoint_parts -= is_checkpoint_part(&item->label);
    zmsg_destroy(&item->bytes);
    free(item);
}

void ho_outbox_destroy(ho_outbox **outbox)
{
    if (!outbox || !*outbox) {
        return;
    }
    while ((*outbox)->head) {
        remove_item(*outbox, &(*outbox)->head);
    }
    free((*outbox)->held);
    free(*outbox);
    *outbox = NULL;
}

ho_outbox_label ho_outbox_label_of(const ho_message *m)
{
    ho_outbox_label label = {.type = m->type, .trial = m->trial, .attempt = m->attempt};
    switch (m->type) {
    case HO_MSG_REPORT:
        label.epoch = m->report.epoch;
        label.keep = true;
        break;
    case HO_MSG_RESULT:
    case HO_MSG_FAIL:
        label.keep = true;
        break;
    case HO_MSG_CHUNK:
        label.keep = m->chunk.kind == HO_CHUNK_ARTIFACT;
        label.ticket = m->chunk.ticket;
        break;
    case HO_MSG_BASELINE:
    case HO_MSG_DONE:
    case HO_MSG_BYE:
        label.lasting = true;
        break;
    default:
        break;
    }
    return label;
}

static ho_held_trial *find_held(const ho_outbox *outbox, int64_t trial)
{
    for (int i = 0; i < outbox->held_count; i++) {
        if (outbox->held[i].trial == trial) {
            return &outbox->held[i];
        }
    }
    return NULL;
}

void ho_outbox_add(ho_outbox *outbox, const ho_outbox_label *label, zmsg_t **bytes)
{
    ho_held_trial *held = find_held(outbox, label->trial);
    bool current = held && held->attempt == label->attempt;
    struct item *item = label->keep && !current ? NULL : calloc(1, sizeof *item);
    if (!item) {
        zmsg_destroy(bytes);
        return;
    }
    if (current && label->epoch > held->epoch) {
        held->epoch = label->epoch;
    }
    if (current && (label->type == HO_MSG_RESULT || label->type == HO_MSG_FAIL)) {
        held->finished = true;
    }
    item->label = *label;
    item->bytes = *bytes;
    *bytes = NULL;
    outbox->checkpoint_parts += is_checkpoint_part(label);
    *outbox->tail = item;
    outbox->tail = &item->next;
    if (!outbox->unsent) {
        outbox->unsent = item;
    }
}

zmsg_t *ho_outbox_next(ho_outbox *outbox)
{
    return outbox->unsent ? outbox->unsent->bytes : NULL;
}

uint64_t ho_outbox_next_ticket(const ho_outbox *outbox)
{
    return outbox->unsent ? outbox->unsent->label.ticket : 0;
}

void ho_outbox_sent(ho_outbox *outbox)
{
    struct item *item = outbox->unsent;
    if (!item) {
        return;
    }
    if (item->label.keep) {
        item->sent = true;
        outbox->unsent = item->next;
        return;
    }
    struct item **link = &outbox->head;
    while (*link != item) {
        link = &(*link)->next;
    }
    remove_item(outbox, link);
}

void ho_outbox_rewind(ho_outbox *outbox)
{
    for (struct item **link = &outbox->head; *link;) {
        if ((*link)->label.keep || (*link)->label.lasting) {
            (*link)->sent = false;
            link = &(*link)->next;
        } else {
            remove_item(outbox, link);
        }
    }
    outbox->unsent = outbox->head;
}

void ho_outbox_again(ho_outbox *outbox, int64_t trial, int32_t attempt)
{
    struct item *again = NULL, **end = &again;
    for (struct item **link = &outbox->head; *link;) {
        struct item *item = *link;
        if (item->label.trial != trial || item->label.attempt != attempt || !item->label.keep ||
            item->label.type == HO_MSG_REPORT) {
            link = &item->next;
            continue;
        }
        if (outbox->unsent == item) {
            outbox->unsent = item->next;
        }
        *link = item->next;
        item->next = NULL;
        item->sent = false;
        *end = item;
        end = &item->next;
    }
    outbox->tail = &outbox->head;
    while (*outbox->tail) {
        outbox->tail = &(*outbox->tail)->next;
    }
    *outbox->tail = again;
    if (again) {
        outbox->tail = end;
        outbox->unsent = outbox->unsent ? outbox->unsent : again;
    }
}

bool ho_outbox_idle(const ho_outbox *outbox)
{
    return outbox->unsent == NULL;
}

int ho_outbox_checkpoint_parts(const ho_outbox *outbox)
{
    return outbox->checkpoint_parts;
}

bool ho_outbox_hold(ho_outbox *outbox, int64_t trial, int32_t attempt)
{
    ho_held_trial *held = find_held(outbox, trial);
    if (held && held->attempt >= attempt) {
        return false;
    }
    for (unsigned i = 0; i < GONE && i < outbox->gone_count; i++) {
        if (outbox->gone[i].trial == trial && outbox->gone[i].attempt >= attempt) {
            return false;
        }
    }
    if (held) {
        (void)ho_outbox_forget(outbox, trial, held->attempt);
    }
    if (outbox->held_count == outbox->held_room) {
        int room = outbox->held_room > 0 ? 2 * outbox->held_room : 64;
        ho_held_trial *grown = realloc(outbox->held, (size_t)room * sizeof *grown);
        if (!grown) {
            return false;
        }
        outbox->held = grown;
        outbox->held_room = room;
    }
    outbox->held[outbox->held_count++] = (ho_held_trial){.trial = trial, .attempt = attempt};
    return true;
}

bool ho_outbox_forget(ho_outbox *outbox, int64_t trial, int32_t attempt)
{
    ho_held_trial *held = find_held(outbox, trial);
    if (!held || held->attempt != attempt) {
        return false;
    }
    int at = (int)(held - outbox->held);
    outbox->gone[outbox->gone_count++ % GONE] = *held;
    outbox->held_count--;
    memmove(held, held + 1, (size_t)(outbox->held_count - at) * sizeof *held);
    for (struct item **link = &outbox->head; *link;) {
        if ((*link)->label.trial == trial && (*link)->label.attempt == attempt) {
            remove_item(outbox, link);
        } else {
            link = &(*link)->next;
        }
    }
    return true;
}

void ho_outbox_forget_all(ho_outbox *outbox)
{
    while (outbox->head) {
        remove_item(outbox, &outbox->head);
    }
    outbox->held_count = 0;
    outbox->gone_count = 0;
}

int ho_outbox_held(const ho_outbox *outbox, ho_held_trial **out)
{
    size_t n = (size_t)outbox->held_count;
    *out = n > 0 ? malloc(n * sizeof **out) : NULL;
    if (!*out) {
        return 0;
    }
    memcpy(*out, outbox->held, n * sizeof **out);
    return outbox->held_count;
}

int ho_outbox_held_count(const ho_outbox *outbox)
{
    return outbox->held_count;
}
