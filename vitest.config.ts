import { defineConfig } from 'vitest/config'

const shared = {
  pool: 'forks' as const,
  testTimeout: 30_000,
  hookTimeout: 60_000,
  // A condition that holds soon on a quiet machine takes longer on a busy one.
  expect: { poll: { timeout: 15_000 } },
  setupFiles: ['test/support/setup.ts'],
}

/** Costs nothing until a test asks for a database. */
const postgres = 'src/store/testing/postgres-broker.ts'

/** Tests under `test/` that do not need the built command. */
const WITHOUT_BUILD = ['test/house/**/*.test.ts', 'test/support/**/*.test.ts']

/** Two projects, so that only the tests which talk to `dist/` pay for building it. */
export default defineConfig({
  test: {
    // One more than most machines have cores to spare: many tests wait for a server, a browser or a disk.
    maxWorkers: 3,
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['src/**/*.test.ts', 'console/src/**/*.test.ts', ...WITHOUT_BUILD],
          globalSetup: [postgres],
        },
      },
      {
        test: {
          ...shared,
          name: 'e2e',
          include: ['test/**/*.test.ts'],
          exclude: WITHOUT_BUILD,
          globalSetup: ['test/support/build.ts', postgres],
          testTimeout: 60_000,
        },
      },
    ],
  },
})
