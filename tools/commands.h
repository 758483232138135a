// The commands of accrue. Each gets its own name as argv[0] and returns the exit code.
#pragma once

namespace accrue::tools {

/// Starts a program on several processes.
int launch(int argc, char** argv);
/// One process of a job, which mpirun starts for launch(): the launcher's process or 0, the
/// program.
int rank(int argc, char** argv);
/// Reads, changes and writes the settings of launch().
int configure(int argc, char** argv);
/// Trains on 1 and on several processes and compares the bits.
int self_test(int argc, char** argv);
/// The job of self_test().
int train(int argc, char** argv);
/// Prints what a bug report needs.
int environment(int argc, char** argv);

}  // namespace accrue::tools
