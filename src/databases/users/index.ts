/**
 * The users of a database's data, and the settings that its clients may change.
 *
 * Every database has two built-in users that cannot be changed: `default` (the owner) and `default_ro` (read-only). On
 * paid plans the owner creates others with ACL SETUSER, over the Redis protocol or REST. They log in with AUTH or with
 * their own REST token (ACL RESTTOKEN).
 *
 * ```
 *   ACL GENTOKEN alice [password] ──▶ token ── ACL SETUSER alice on ><token> ~news:* +@read ──▶ stored, sent to engines
 *                                                       AUTH alice <password or token> ──▶ lanes of alice
 *                                       ACL RESTTOKEN alice <password or token> ──▶ token ──▶ REST requests of alice
 * ```
 *
 * Guarantees:
 * - Before SETUSER is answered, the user is stored with the database and every running engine knows it. It survives
 *   restarts and sleep, and is valid in every region.
 * - Passwords are stored as SHA-256 only. SETUSER takes them only inside tokens of ACL GENTOKEN, which has checked their
 *   strength; a token is valid for one user of one database.
 * - A REST token is valid while its user is on and still has the password, and grants what the user may do.
 * - No user can run commands that manage the engine, not even through scripts (`engine-rules.ts`). ACL and CONFIG are
 *   reserved to `default`, so nobody can create a user with more permissions than their own.
 * - A deleted user is disconnected.
 * - A setting is stored only within bounds that every supporting engine accepts (`settings.ts`): an engine does not start
 *   with a wrong one.
 *
 * A password is never set in clear text, and the built-in users never change.
 */

export { Administration, type AdministrationDeps, type AdministrationRequest } from './administration.js'
export type { SettingFacts } from './configuration.js'
export { FORBIDDEN_TO_ALL } from './engine-rules.js'
export { effectiveSettings, readSettings, type SettingBounds } from './settings.js'
export { matchesPassword, readUsers, restTokenOf, type StoredUser } from './user.js'
export { engineUserOf, type Reply } from './views.js'
