import { defineConfig } from 'vitest/config'

const shared = {
  pool: 'forks',
  testTimeout: 30_000,
  hookTimeout: 60_000,
  setupFiles: ['test/support/setup.ts'],
} as const

/** Two projects, so that only the tests which talk to `dist/` pay for building it. */
export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      { test: { ...shared, name: 'unit', include: ['src/**/*.test.ts', 'scripts/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'e2e',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          testTimeout: 60_000,
        },
      },
    ],
  },
})
