/**
 * Helpers of tests and benchmarks: waiting for a condition, free ports, temporary directories, a running server.
 *
 * Everything opened through these helpers is closed after the last test of a file (`setup.ts` registers that);
 * a benchmark calls `cleanup()` at its end. A server that leaves a process behind fails the file that started it.
 */

export { isPortFree } from '../../src/testkit/port-block.js'
export { basicOf } from './basic.js'
export { atCleanup, cleanup } from './cleanup.js'
export { commandHost } from './command-host.js'
export {
  type Answer,
  type Credentials,
  call,
  childEnv,
  credentialsIn,
  type Exit,
  MAIN_JS,
  newPlace,
  type Place,
  placeFlags,
  type RunningHomeport,
  type StartOptions,
  startHomeport,
} from './homeport.js'
export { freePort, freePortRange } from './ports.js'
export { enginesIn, type FoundProcess, processesMarked } from './processes.js'
export { mainThreadMs, unitMs, workMs } from './processor-time.js'
export { bundleProgram, THREADS } from './program.js'
export { type CommandResult, type RunOptions, run, runHomeport } from './run.js'
export { isSampled, sampled } from './sample.js'
export { smallDisk } from './small-disk.js'
export { tempDir } from './temp-dir.js'
export { isInTurn } from './turns.js'
export { type WaitOptions, waitFor } from './wait-for.js'
