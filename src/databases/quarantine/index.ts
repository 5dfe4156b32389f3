/**
 * What stands in the data directory and the store does not know: set aside, told, and brought back when somebody asks.
 *
 * ```
 *   start: files without a row ─▶ <dataDir>/quarantine/<time>-<name>/data ─┬─ adopt ─▶ a database or a backup again
 *                                                        /note.json        └─ after quarantineMs ─▶ deleted
 * ```
 *
 * A store that has lost its latest commits, or an older copy of one, does not know what was made since; so files that
 * it does not know are never deleted, only moved. When there are many of them the server does not even do that without
 * being told to: most likely the store is not the one that belongs here. What Homeport itself has begun to delete or to
 * make has a row that says so, and is no stranger.
 *
 * `fleet/data/quarantine-files.ts` has the entries on disk, each with a note that says what it is, where it stood, why and
 * when: the fleet sets damaged data aside in the same place. `quarantine.ts`: what goes in at the start, what comes back,
 * what is shown.
 */
export { Quarantine, refuseLostStore } from './quarantine.js'
