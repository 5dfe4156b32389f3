/**
 * Test files that take turns: each `npm test` runs one file of each group, because all files would take too long. It sets
 * `HOMEPORT_TEST_TURN`, which chooses the files. Runs of chosen files, the commands of the campaigns (`npm run crash`, `npm
 * run damage` …) and `HOMEPORT_TEST_SAMPLE=all npm test` run all files.
 */

/** Campaigns of crashes and of several nodes. The members of a group test one kind of thing. */
const CAMPAIGNS: readonly (readonly string[])[] = [
  // Nodes fail while all features are in use.
  ['test/crash/nodes.test.ts', 'test/crash/takeover.test.ts', 'test/databases/read-regions.test.ts'],
  // Databases on several nodes.
  ['test/databases/moves.test.ts', 'test/databases/nodes.test.ts', 'test/databases/standbys.test.ts'],
  // The store or its files fail.
  ['test/crash/outages.test.ts', 'test/damage/damage.test.ts', 'test/store/postgres-outage.test.ts'],
  // One server is killed while all features are in use.
  ['test/crash/crash.test.ts', 'test/crash/undo.test.ts', 'test/soak/soak.test.ts'],
  // Servers are killed in the middle of a change.
  [
    'test/backups/crash.test.ts',
    'test/bulk/crash.test.ts',
    'test/crash/moves.test.ts',
    'src/databases/crash-points.integration.test.ts',
  ],
]

/** Long files that start servers, engines or pages many times. Unit tests and other files test much of the same. */
const LONG_FILES: readonly (readonly string[])[] = [
  ['test/command/start.test.ts', 'test/command/processes.test.ts'],
  ['test/command/accounts.test.ts', 'test/command/cli.test.ts'],
  ['test/command/bench.test.ts', 'test/command/local-servers.test.ts', 'test/command/logs.test.ts'],
  // A whole server is copied.
  ['test/backups/service.test.ts', 'test/backups/modes.test.ts', 'test/store/copy.test.ts'],
  ['test/databases/users.test.ts', 'test/databases/usage.test.ts'],
  ['test/databases/changes.test.ts', 'test/databases/sleep.test.ts', 'test/databases/not-home.test.ts'],
  ['src/databases/backups/backups.integration.test.ts', 'src/databases/backups/imports.integration.test.ts'],
  [
    'src/databases/changes/changes.integration.test.ts',
    'src/databases/quarantine/quarantine.integration.test.ts',
    'src/databases/sleep/sleep.integration.test.ts',
  ],
  ['src/gateway/rest/large-values.integration.test.ts', 'test/gateway/large-values.test.ts'],
  // Input that takes as much work as the limits allow.
  [
    'src/gateway/client/worst-input.integration.test.ts',
    'src/gateway/rest/worst-input.integration.test.ts',
    'test/e2e/worst-requests.test.ts',
  ],
  // Clients that fill memory.
  [
    'src/gateway/client-memory.integration.test.ts',
    'src/gateway/client/pressure.integration.test.ts',
    'src/gateway/client/upload.integration.test.ts',
  ],
  // What monitoring tools get.
  ['test/e2e/alert-rules.test.ts', 'test/e2e/opentelemetry.test.ts'],
  ['test/console/account.test.ts', 'test/console/workflows.test.ts'],
  ['test/console/databases.test.ts', 'test/console/queue.test.ts'],
  ['test/console/bulk.test.ts', 'test/console/data-browser.test.ts', 'test/console/nodes.test.ts'],
  ['test/tools/cli-and-terraform.test.ts', 'test/tools/mcp.test.ts'],
]

/** All groups. A run plays one file of each. */
export const GROUPS = [...CAMPAIGNS, ...LONG_FILES]

/** The number of this run; `undefined` for a run of all files. */
const turn = process.env.HOMEPORT_TEST_TURN === undefined ? undefined : Number(process.env.HOMEPORT_TEST_TURN)

/** Whether this run plays the member at a place (from 0) of a group. */
export const isInTurn = (place: number, members: number): boolean =>
  turn === undefined || place % members === turn % members

/** The test files that this run leaves out. */
export const filesOfOtherTurns: readonly string[] = GROUPS.flatMap((group) =>
  group.filter((_, place) => !isInTurn(place, group.length)),
)
