/* SPDX-License-Identifier: Apache-2.0
 * hyperopt: tunes trading agents and their environment. See commands.h. */
#include "coordinator/commands.h"

int main(int argc, char **argv)
{
    return ho_commands_run(argc, argv);
}
