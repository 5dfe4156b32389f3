/**
 * Accounts: the owners of databases, messages and runs, and the credentials with which callers act for them.
 *
 * An account has an e-mail, a type (`free` or `paid`), API keys for the management API (HTTP Basic), queue tokens
 * for the queue and workflow service (Bearer), and two signing keys for what the queue delivers. API keys and tokens
 * are random and stored as SHA-256. The store also keeps queue tokens encrypted, because the management API shows them to
 * their owner (`queue-accounts.ts`); the key is in the data directory (`token-seal.ts`). Signing keys are stored in clear
 * text, because each delivery needs one.
 *
 * The first start:
 *
 *   store and data directory are bound to each other ── refuses a directory that was used with another store
 *     └─ the store has no account ─┬─ no credentials.json: generate secrets, write the file (0600), commit the account
 *                                  └─ credentials.json exists (after a crash): commit the account from it
 *     └─ the store has accounts ───┬─ credentials.json belongs to one of them: keep its signing keys up to date
 *                                  └─ it is missing or foreign: continue, and log a warning
 *
 * A team is an account that people share. Its members are identified by e-mail, each with a role, and act for the team
 * with team keys. `teams.ts` and `api-keys.ts` change teams and keys. A deleted key or membership is refused at once,
 * because memory is reloaded before the change is answered. Nobody but members can see a team.
 *
 * Signing in to the console creates a session: a cookie that has the rights of one API key and ends with it
 * (`sessions.ts`).
 *
 * Keys and queue tokens can expire and be rotated with an overlap, and their last use is recorded (`rotation.ts`,
 * `last-uses.ts`). Named queue tokens have scopes (`queue-tokens.ts`); each operation declares which scopes suffice for it.
 *
 * The operator is the account that was created first. It creates, suspends and deletes the accounts of others without
 * seeing their data (`operator.ts`). A team is suspended and deleted together with the account of its owner.
 *
 * The audit log records every change: who made it, from where and with which key (`audit.ts`).
 *
 * An operator who has the data directory but no credentials creates new ones while the server is stopped
 * (`first-account.ts`).
 *
 * `installation.ts` and `store-mark.ts` notice a store that does not belong to the data directory, or has lost commits.
 *
 * Guarantees: every account is created with credentials that its creator gets; refusing a credential takes
 * the same time whichever half was wrong; secrets never reach the log. Accounts are few and held in memory,
 * so callers are identified without a store read: `access.ts` indexes the rows of the last read,
 * `directory.ts` identifies the caller of a request.
 */
export { emailKeyOf } from './access.js'
export { Accounts, type AccountsDeps } from './accounts.js'
export { type AuditEvent, auditRow } from './audit.js'
export { type Credentials, credentialsPath, newCredentials, readCredentials, writeCredentials } from './credentials.js'
export type { Account, SigningKeys } from './directory.js'
export { type ResetOptions, resetCredentials } from './first-account.js'
export { installationOf } from './installation.js'
export { accountRoutes, type SessionRoutesOptions, sessionRoutes } from './routes.js'
export { StoreMark } from './store-mark.js'
