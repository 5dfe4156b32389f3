/**
 * What takes turns: `npm test` does a third or a quarter of it, another part in another run, because it would take too long. It sets
 * `HOMEPORT_TEST_TURN`. Runs of chosen files, the commands of the campaigns (`npm run crash`, `npm run damage` …) and
 * `HOMEPORT_TEST_SAMPLE=all npm test` leave nothing out.
 */

/** Campaigns of crashes and of several nodes: a run plays one of each group. Its members test one kind of thing. */
export const GROUPS: readonly (readonly string[])[] = [
  // Nodes that fail while everything is used.
  ['test/crash/nodes.test.ts', 'test/crash/takeover.test.ts', 'test/databases/read-regions.test.ts'],
  // Databases of nodes.
  ['test/databases/moves.test.ts', 'test/databases/nodes.test.ts', 'test/databases/standbys.test.ts'],
  // A store or its files that fail.
  ['test/crash/outages.test.ts', 'test/damage/damage.test.ts', 'test/store/postgres-outage.test.ts'],
  // One server that is killed while everything is used.
  ['test/crash/crash.test.ts', 'test/crash/undo.test.ts', 'test/soak/soak.test.ts'],
  // Servers that are killed in the middle of a change.
  [
    'test/backups/crash.test.ts',
    'test/bulk/crash.test.ts',
    'test/crash/moves.test.ts',
    'src/databases/crash-points.integration.test.ts',
  ],
]

/** The number of this run; `undefined` for a run that plays everything. */
const turn = process.env.HOMEPORT_TEST_TURN === undefined ? undefined : Number(process.env.HOMEPORT_TEST_TURN)

/** Whether it is the turn of the member at a place (from 0) of a group. */
export const isInTurn = (place: number, members: number): boolean =>
  turn === undefined || place % members === turn % members

/** The test files that this run leaves out. */
export const filesOfOtherTurns: readonly string[] = GROUPS.flatMap((group) =>
  group.filter((_, place) => !isInTurn(place, group.length)),
)
