import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const shared = {
  pool: 'forks' as const,
  // A process runs one file after the other: to start one and to load the sources anew for each file would take a third
  // of the time. Nothing in the sources is remembered outside of what a test makes, and each file undoes what it opened.
  isolate: false,
  // What is soon done on a quiet machine takes long on a busy one; a test that waits for a condition gives up before.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 30_000 } },
  setupFiles: ['test/support/setup.ts'],
}

/** Where temporary files are; ends last, because the others delete theirs. */
const memoryFolder = 'test/support/memory-folder.ts'

/** One PostgreSQL for all projects; costs nothing until a test asks for a database. */
const postgres = 'src/store/testing/postgres-broker.ts'

/** Tests under `test/` that do not need the built command. */
const WITHOUT_BUILD = ['test/house/**/*.test.ts', 'test/support/**/*.test.ts']

/** Tests of a module that take seconds: they kill engines, cut connections, or compare with a model for a while. */
const INTEGRATION = 'src/**/*.integration.test.ts'

/**
 * - `unit`: the daily loop. Everything that is done in a few seconds, with real engines and real stores.
 * - `integration`: the slow tests of the modules.
 * - `e2e`: tests that talk to the built program in `dist/`, which only they wait for.
 */
export default defineConfig({
  test: {
    // Many tests wait for a server, a browser or a disk, so two for each core of a small machine; and no more than there
    // are stretches of ports (`test/support/ports.ts`).
    maxWorkers: Math.min(8, Math.max(4, availableParallelism())),
    globalSetup: [memoryFolder, postgres],
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['src/**/*.test.ts', 'console/src/**/*.test.ts', ...WITHOUT_BUILD],
          exclude: [INTEGRATION],
        },
      },
      {
        test: { ...shared, name: 'integration', include: [INTEGRATION] },
      },
      {
        test: {
          ...shared,
          name: 'e2e',
          include: ['test/**/*.test.ts'],
          exclude: WITHOUT_BUILD,
          globalSetup: ['test/support/build.ts'],
        },
      },
    ],
  },
})
