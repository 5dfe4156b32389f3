/**
 * The users of a database's data, and the settings that its clients may change.
 *
 * Every database has two users that nobody can change: `default`, who owns it, and `default_ro`, who only reads. On
 * paid plans the owner makes others with ACL SETUSER, over the Redis protocol or REST, and they log in with AUTH or with
 * a REST token of their own (ACL RESTTOKEN).
 *
 * ```
 *   ACL GENTOKEN alice [password] ──▶ token ── ACL SETUSER alice on ><token> ~news:* +@read ──▶ stored, told to engines
 *                                                       AUTH alice <password or token> ──▶ lanes of alice
 *                                       ACL RESTTOKEN alice <password or token> ──▶ token ──▶ REST requests of alice
 * ```
 *
 * What it promises:
 * - A user is stored with the database before SETUSER is answered, and every engine of the database knows it by then:
 *   it survives restarts and sleep, and holds in every region.
 * - Passwords are kept as SHA-256 only. They come in tokens that this server has made and so judged; the token of one
 *   user or database is of no use to another.
 * - A REST token follows its user: what the user may do, whether it is on, and whether it still has the password.
 * - What reaches the engine itself is out of reach for every user, also through scripts (`engine-rules.ts`), and ACL and
 *   CONFIG are for `default` alone, so nobody makes a user who may more than they do.
 * - A user that was deleted is disconnected.
 * - A setting is stored only within bounds that every engine takes which knows it (`settings.ts`): one that an engine does
 *   not start with would cost the database.
 *
 * What it never does: let a password be set as it is, or change the users that every database has.
 */

export { Administration, type AdministrationDeps, type AdministrationRequest } from './administration.js'
export type { SettingFacts } from './configuration.js'
export { FORBIDDEN_TO_ALL } from './engine-rules.js'
export { effectiveSettings, readSettings, type SettingBounds } from './settings.js'
export { matchesPassword, readUsers, restTokenOf, type StoredUser } from './user.js'
export { engineUserOf, type Reply } from './views.js'
