/**
 * Files in the data directory that the store does not know: moved aside, reported, and brought back on request.
 *
 * ```
 *   start: files without a row ─▶ <dataDir>/quarantine/<time>-<name>/data ─┬─ adopt ─▶ a database or a backup again
 *                                                        /note.json        └─ after quarantineMs ─▶ deleted
 * ```
 *
 * A store that has lost its latest commits, or an older copy of a store, does not know the databases that were created
 * since. So unknown files are never deleted at once, only moved. When there are many, the server refuses to start until
 * the operator agrees: most likely the store does not belong to this data directory. Databases that Homeport is creating
 * or deleting have a row, so their files are not unknown.
 *
 * `fleet/data/quarantine-files.ts` has the entries on disk. Each has a note: what it is, where it was, why and when it was
 * moved. The fleet sets damaged data aside in the same place. `quarantine.ts` moves files in, lists them and adopts them.
 */
export { Quarantine, refuseLostStore } from './quarantine.js'
