/** How the command ends. Scripts may rely on these numbers. */
export type ExitCode = 0 | 1 | 2

/** Done; a server was asked to stop and stopped cleanly. */
export const DONE: ExitCode = 0
/** It did not work, or a check of `doctor` failed. The reason is on stderr. */
export const FAILED: ExitCode = 1
/** The command was called wrongly: an unknown flag, a value of the configuration that is refused. */
export const MISUSED: ExitCode = 2

/** The end of `homeport --help`. */
export const EXIT_CODES_HELP = `
Exit codes:
  0  done; the server was asked to stop and stopped cleanly
  1  it did not work, or a check of doctor failed; the reason is on stderr
  2  called wrongly: an unknown flag or a refused configuration`
