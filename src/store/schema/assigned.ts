import type { ColumnType } from 'kysely'

/** A column that the database fills in. */
export type Assigned<T> = ColumnType<T, never, never>
