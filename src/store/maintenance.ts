/** Exports for commands that check a store, or copy it to another database, without opening it. */

export type { CheckDepth, StoreReport } from './check.js'
export { type CopyOptions, type CopyProgress, type CopyReport, copyStore } from './copy/copy-store.js'
export { checkPostgresStore } from './postgres/check.js'
export { type EnvironmentEffect, environmentEffect } from './postgres/environment.js'
export { checkPostgresServer, type ServerFinding, type ServerReport } from './postgres/server-check.js'
export { checkSqliteStore } from './sqlite/check.js'
