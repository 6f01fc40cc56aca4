/* SPDX-License-Identifier: Apache-2.0
 * Field numbers are those of onnx.proto (ONNX IR version 7). Values are named after what they
 * hold; node names follow from their first output. */
#include "study/onnx.h"

#include <stdio.h>
#include <string.h>

#include "kernels/agents/net_layout.h"
#include "study/protobuf.h"

enum {
    IR_VERSION = 7,
    OPSET = 13,
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_META = 14,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TYPE_FLOAT = 1,
    TYPE_INT = 2,
    TYPE_INTS = 7,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    ELEM_FLOAT = 1,
    ELEM_INT64 = 7,
    NAME_MAX_LENGTH = 64,
};

typedef struct graph {
    ho_protobuf nodes, initializers;
    const ho_net_layout *net;
    const ho_tensors *weights;
    ho_err *err;
    ho_status rc; /* the first failure */
} graph;

/* ---- tensors ---- */

static void put_tensor(ho_protobuf *out, const char *name, int type, const int64_t *shape, int ndim,
                       const void *data, size_t size)
{
    ho_protobuf t = {0};
    for (int i = 0; i < ndim; i++) {
        ho_protobuf_varint(&t, TENSOR_DIMS, shape[i]);
    }
    ho_protobuf_varint(&t, TENSOR_TYPE, type);
    ho_protobuf_text(&t, TENSOR_NAME, name);
    ho_protobuf_bytes(&t, TENSOR_RAW, data, size);
    ho_protobuf_message(out, GRAPH_INITIALIZER, &t);
}

static void put_int64s(graph *g, const char *name, const int64_t *values, int64_t n, int scalar)
{
    put_tensor(&g->initializers, name, ELEM_INT64, &n, scalar ? 0 : 1, values,
               (size_t)n * sizeof *values);
}

static void put_weight(graph *g, const char *layer, const char *what, int64_t out, int64_t in)
{
    char name[NAME_MAX_LENGTH];
    snprintf(name, sizeof name, "online.%.20s.%.20s", layer, what);
    for (int i = 0; i < g->weights->count; i++) {
        const ho_tensor *t = &g->weights->tensor[i];
        if (strcmp(t->name, name) != 0) {
            continue;
        }
        if (t->ndim != (in > 0 ? 2 : 1) || t->shape[0] != out || (in > 0 && t->shape[1] != in)) {
            g->rc = ho_err_set(g->err, HO_EINVAL, "%s has another shape than its network's", name);
            return;
        }
        put_tensor(&g->initializers, name, ELEM_FLOAT, t->shape, t->ndim, t->data,
                   (size_t)(out * (in > 0 ? in : 1)) * sizeof(float));
        return;
    }
    g->rc = ho_err_set(g->err, HO_EINVAL, "weights: no tensor %s", name);
}

/* ---- nodes ---- */

static void put_int(ho_protobuf *node, const char *name, int64_t value)
{
    ho_protobuf a = {0};
    ho_protobuf_text(&a, ATTRIBUTE_NAME, name);
    ho_protobuf_varint(&a, ATTRIBUTE_I, value);
    ho_protobuf_varint(&a, ATTRIBUTE_TYPE, TYPE_INT);
    ho_protobuf_message(node, NODE_ATTRIBUTE, &a);
}

static void put_float(ho_protobuf *node, const char *name, float value)
{
    ho_protobuf a = {0};
    ho_protobuf_text(&a, ATTRIBUTE_NAME, name);
    ho_protobuf_float(&a, ATTRIBUTE_F, value);
    ho_protobuf_varint(&a, ATTRIBUTE_TYPE, TYPE_FLOAT);
    ho_protobuf_message(node, NODE_ATTRIBUTE, &a);
}

static void put_axes(ho_protobuf *node, int64_t axis)
{
    ho_protobuf a = {0};
    ho_protobuf_text(&a, ATTRIBUTE_NAME, "axes");
    ho_protobuf_varint(&a, ATTRIBUTE_INTS, axis);
    ho_protobuf_varint(&a, ATTRIBUTE_TYPE, TYPE_INTS);
    ho_protobuf_message(node, NODE_ATTRIBUTE, &a);
}

/* Starts a node with up to three inputs (NULL: no more) and one output. */
static ho_protobuf node_of(const char *op, const char *a, const char *b, const char *c,
                           const char *output)
{
    ho_protobuf node = {0};
    const char *const inputs[3] = {a, b, c};
    for (int i = 0; i < 3 && inputs[i]; i++) {
        ho_protobuf_text(&node, NODE_INPUT, inputs[i]);
    }
    ho_protobuf_text(&node, NODE_OUTPUT, output);
    ho_protobuf_text(&node, NODE_NAME, output);
    ho_protobuf_text(&node, NODE_OP, op);
    return node;
}

static void put_node(graph *g, const char *op, const char *a, const char *b, const char *output)
{
    ho_protobuf node = node_of(op, a, b, NULL, output);
    ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
}

/* output = x W' + b, then LeakyReLU when `leaky`. */
static void put_layer(graph *g, ho_layer_id id, const char *x, int leaky, const char *output)
{
    const ho_layer_layout *l = &g->net->layer[id];
    char weight[NAME_MAX_LENGTH], bias[NAME_MAX_LENGTH], raw[NAME_MAX_LENGTH];
    snprintf(weight, sizeof weight, "online.%s.weight", l->name);
    snprintf(bias, sizeof bias, "online.%s.bias", l->name);
    snprintf(raw, sizeof raw, "%s_raw", output);
    put_weight(g, l->name, "weight", l->out, l->in);
    put_weight(g, l->name, "bias", l->out, 0);
    ho_protobuf node = node_of("Gemm", x, weight, bias, leaky ? raw : output);
    put_int(&node, "transB", 1);
    ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
    if (leaky) {
        node = node_of("LeakyRelu", raw, NULL, NULL, output);
        put_float(&node, "alpha", 0.01f);
        ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
    }
}

/* Cuts axis 1 of x into the branches: names[d]. One branch: x itself. */
static void put_branches(graph *g, const char *x, char names[HO_BRANCHES_MAX][NAME_MAX_LENGTH])
{
    const ho_branches *b = &g->net->branches;
    if (b->count == 1) {
        snprintf(names[0], NAME_MAX_LENGTH, "%s", x);
        return;
    }
    char sizes[NAME_MAX_LENGTH];
    int64_t size[HO_BRANCHES_MAX];
    ho_protobuf node = {0};
    snprintf(sizes, sizeof sizes, "%s_sizes", x);
    ho_protobuf_text(&node, NODE_INPUT, x);
    ho_protobuf_text(&node, NODE_INPUT, sizes);
    for (int d = 0; d < b->count; d++) {
        size[d] = b->size[d];
        snprintf(names[d], NAME_MAX_LENGTH, "%s_branch%d", x, d);
        ho_protobuf_text(&node, NODE_OUTPUT, names[d]);
    }
    put_int64s(g, sizes, size, b->count, 0);
    ho_protobuf_text(&node, NODE_NAME, sizes);
    ho_protobuf_text(&node, NODE_OP, "Split");
    put_int(&node, "axis", 1);
    ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
}

/* output = the branches joined again along axis 1. */
static void put_joined(graph *g, char names[HO_BRANCHES_MAX][NAME_MAX_LENGTH], const char *output)
{
    const int count = g->net->branches.count;
    ho_protobuf node = node_of("Concat", names[0], count > 1 ? names[1] : NULL,
                               count > 2 ? names[2] : NULL, output);
    put_int(&node, "axis", 1);
    ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
}

/* output = value + x - mean of x over axis 1, branch by branch. */
static void put_dueling(graph *g, const char *x, const char *value, const char *output)
{
    char part[HO_BRANCHES_MAX][NAME_MAX_LENGTH], done[HO_BRANCHES_MAX][NAME_MAX_LENGTH];
    put_branches(g, x, part);
    for (int d = 0; d < g->net->branches.count; d++) {
        char mean[NAME_MAX_LENGTH], centred[NAME_MAX_LENGTH];
        snprintf(mean, sizeof mean, "mean%d", d);
        snprintf(centred, sizeof centred, "centred%d", d);
        snprintf(done[d], sizeof done[d], "dueling%d", d);
        ho_protobuf node = node_of("ReduceMean", part[d], NULL, NULL, mean);
        put_axes(&node, 1);
        put_int(&node, "keepdims", 1);
        ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
        put_node(g, "Sub", part[d], mean, centred);
        put_node(g, "Add", centred, value, done[d]);
    }
    put_joined(g, done, output);
}

/* score = mean of the atoms' distribution. x: [batch, outputs * atoms]. */
static void put_c51(graph *g, double v_max, const char *x, const char *value)
{
    const ho_net_layout *net = g->net;
    const int64_t by_atom[3] = {-1, net->branches.outputs, net->atoms};
    const int64_t one[3] = {-1, 1, net->atoms}, flat[2] = {-1, net->branches.outputs};
    const int64_t support_shape[2] = {net->atoms, 1};
    float support[256];
    const char *logits = "by_atom";
    for (int i = 0; i < net->atoms; i++) {
        support[i] = (float)(-v_max + 2.0 * v_max / (net->atoms - 1) * i);
    }
    put_int64s(g, "by_atom_shape", by_atom, 3, 0);
    put_int64s(g, "flat_shape", flat, 2, 0);
    put_tensor(&g->initializers, "support", ELEM_FLOAT, support_shape, 2, support,
               (size_t)net->atoms * sizeof *support);
    put_node(g, "Reshape", x, "by_atom_shape", "by_atom");
    if (net->has_value) {
        put_int64s(g, "value_shape", one, 3, 0);
        put_node(g, "Reshape", value, "value_shape", "value_by_atom");
        put_dueling(g, "by_atom", "value_by_atom", "logits");
        logits = "logits";
    }
    ho_protobuf node = node_of("Softmax", logits, NULL, NULL, "probability");
    put_int(&node, "axis", 2);
    ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
    put_node(g, "MatMul", "probability", "support", "means");
    put_node(g, "Reshape", "means", "flat_shape", "score");
}

static void put_log_softmax(graph *g, const char *x)
{
    char part[HO_BRANCHES_MAX][NAME_MAX_LENGTH], done[HO_BRANCHES_MAX][NAME_MAX_LENGTH];
    put_branches(g, x, part);
    for (int d = 0; d < g->net->branches.count; d++) {
        snprintf(done[d], sizeof done[d], "log_p%d", d);
        ho_protobuf node = node_of("LogSoftmax", part[d], NULL, NULL, done[d]);
        put_int(&node, "axis", 1);
        ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
    }
    put_joined(g, done, "score");
}

static void put_scalar(graph *g, const char *name, int64_t value)
{
    put_int64s(g, name, &value, 1, 1);
}

/* action = the composed index of the branches' best choices. */
static void put_action(graph *g)
{
    const ho_branches *b = &g->net->branches;
    char part[HO_BRANCHES_MAX][NAME_MAX_LENGTH], best[HO_BRANCHES_MAX][NAME_MAX_LENGTH];
    put_branches(g, "score", part);
    for (int d = 0; d < b->count; d++) {
        const int whole = b->count == 1 && b->outputs == HO_ACTIONS;
        snprintf(best[d], sizeof best[d], whole ? "action" : "best%d", d);
        ho_protobuf node = node_of("ArgMax", part[d], NULL, NULL, best[d]);
        put_int(&node, "axis", 1);
        put_int(&node, "keepdims", 0);
        ho_protobuf_message(&g->nodes, GRAPH_NODE, &node);
    }
    if (b->count == 3) {
        put_scalar(g, "nine", 9);
        put_scalar(g, "three", 3);
        put_node(g, "Mul", best[0], "nine", "exposure");
        put_node(g, "Mul", best[1], "three", "order");
        put_node(g, "Add", "exposure", "order", "without_urgency");
        put_node(g, "Add", "without_urgency", best[2], "action");
    } else if (b->outputs == HO_EXPOSURES) {
        put_scalar(g, "nine", 9);
        put_scalar(g, "market_aggressive", HO_MARKET_AGGRESSIVE);
        put_node(g, "Mul", best[0], "nine", "exposure");
        put_node(g, "Add", "exposure", "market_aggressive", "action");
    }
}

/* ---- the model ---- */

static void put_network(graph *g, const ho_cohort_key *key, double v_max)
{
    const ho_net_layout *net = g->net;
    put_layer(g, HO_LAYER_TRUNK0, "state", 1, "trunk0");
    put_layer(g, HO_LAYER_TRUNK1, "trunk0", 1, "trunk1");
    put_layer(g, HO_LAYER_MAIN0, "trunk1", 1, "main0");
    if (key->algorithm == HO_PPO) { /* the value does not act */
        put_layer(g, HO_LAYER_MAIN1, "main0", 0, "logit");
        put_log_softmax(g, "logit");
        put_action(g);
        return;
    }
    if (net->has_value) {
        put_layer(g, HO_LAYER_VALUE0, "trunk1", 1, "value0");
        put_layer(g, HO_LAYER_VALUE1, "value0", 0, "value");
    }
    const int plain = net->atoms == 1 && !net->has_value;
    put_layer(g, HO_LAYER_MAIN1, "main0", 0, plain ? "score" : "main");
    if (net->atoms > 1) {
        put_c51(g, v_max, "main", "value");
    } else if (net->has_value) {
        put_dueling(g, "main", "value", "score");
    }
    put_action(g);
}

/* A value of [batch] or [batch, columns]. */
static void put_value_info(ho_protobuf *graph_message, int field, const char *name, int type,
                           int64_t columns)
{
    ho_protobuf info = {0}, value_type = {0}, tensor = {0}, shape = {0}, dim = {0};
    ho_protobuf_text(&dim, 2, "batch");
    ho_protobuf_message(&shape, 1, &dim);
    if (columns > 0) {
        ho_protobuf_varint(&dim, 1, columns);
        ho_protobuf_message(&shape, 1, &dim);
    }
    ho_protobuf_varint(&tensor, 1, type);
    ho_protobuf_message(&tensor, 2, &shape);
    ho_protobuf_message(&value_type, 1, &tensor);
    ho_protobuf_text(&info, 1, name);
    ho_protobuf_message(&info, 2, &value_type);
    ho_protobuf_message(graph_message, field, &info);
}

ho_status ho_onnx_encode(const ho_cohort_key *key, double v_max, const ho_tensors *weights,
                         const char *const (*meta)[2], int n, void **bytes, size_t *size,
                         ho_err *err)
{
    const ho_net_layout net = ho_net_layout_of(key);
    graph g = {.net = &net, .weights = weights, .err = err, .rc = HO_OK};
    ho_protobuf message = {0}, model = {0}, opset = {0};
    *bytes = NULL;
    *size = 0;
    put_network(&g, key, v_max);
    ho_protobuf_append(&message, &g.nodes);
    ho_protobuf_text(&message, GRAPH_NAME, "hyperopt");
    ho_protobuf_append(&message, &g.initializers);
    put_value_info(&message, GRAPH_INPUT, "state", ELEM_FLOAT, net.state);
    put_value_info(&message, GRAPH_OUTPUT, "score", ELEM_FLOAT, net.branches.outputs);
    put_value_info(&message, GRAPH_OUTPUT, "action", ELEM_INT64, 0);
    ho_protobuf_varint(&model, MODEL_IR_VERSION, IR_VERSION);
    ho_protobuf_text(&model, MODEL_PRODUCER, "hyperopt");
    ho_protobuf_text(&model, MODEL_PRODUCER_VERSION, HYPEROPT_VERSION);
    ho_protobuf_message(&model, MODEL_GRAPH, &message);
    ho_protobuf_varint(&opset, 2, OPSET);
    ho_protobuf_message(&model, MODEL_OPSET, &opset);
    for (int i = 0; i < n; i++) {
        ho_protobuf pair = {0};
        ho_protobuf_text(&pair, 1, meta[i][0]);
        ho_protobuf_text(&pair, 2, meta[i][1]);
        ho_protobuf_message(&model, MODEL_META, &pair);
    }
    if (g.rc == HO_OK && model.failed) {
        g.rc = ho_err_set(err, HO_ENOMEM, "ONNX model: out of memory");
    }
    if (g.rc != HO_OK) {
        ho_protobuf_free(&model);
        return g.rc;
    }
    *bytes = model.bytes;
    *size = model.size;
    return HO_OK;
}
