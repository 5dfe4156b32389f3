import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'
import { SlowestFirst } from './test/support/slowest-first.js'
import { filesOfOtherTurns } from './test/support/turns.js'

/** Where temporary files are; ends last, because the others delete theirs. */
const memoryFolder = 'test/support/memory-folder.ts'

/** One PostgreSQL for all files; costs nothing until a test asks for a database. */
const postgres = 'src/store/testing/postgres-broker.ts'

/** Builds `dist/` when there is a test of the built program among the files. */
const build = 'test/support/build.ts'

/** Chooses which cases of long lists a run tries. */
const sample = 'test/support/sample.ts'

/**
 * One project for all tests, because each project loads the sources anew into processes of its own. By their names there
 * are three kinds:
 *
 * - unit tests beside the code: what is done in a few seconds, with real engines and real stores. The daily loop.
 * - `*.integration.test.ts` beside the code: the slow ones, which kill engines, cut connections, or compare with a model.
 * - `test/`: tests that talk to the built program in `dist/`.
 */
export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'console/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...filesOfOtherTurns()],
    pool: 'forks',
    // Many tests wait for a server, a browser or a disk, so two for each core of a small machine; and no more than there
    // are stretches of ports (`test/support/ports.ts`).
    maxWorkers: Math.min(8, Math.max(5, availableParallelism())),
    // A process runs one file after the other: to start one and to load the sources anew for each file would take a third
    // of the time. Nothing in the sources is remembered outside of what a test makes, and each file undoes what it opened.
    isolate: false,
    // The cores are busy with the other files, so garbage is collected by the thread that makes it: helpers would only take
    // turns with it.
    execArgv: ['--single-threaded-gc'],
    sequence: { sequencer: SlowestFirst },
    // What is soon done on a quiet machine takes long on a busy one; a test that waits for a condition gives up before.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    setupFiles: ['test/support/setup.ts'],
    globalSetup: [memoryFolder, postgres, build, sample],
  },
})
