/** The tabs of a database's page, in their order. */
export const DATABASE_TABS = ['overview', 'usage', 'data', 'users', 'backups', 'settings'] as const

/** A tab of a database's page. */
export type DatabaseTab = (typeof DATABASE_TABS)[number]
