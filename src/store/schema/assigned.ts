import type { ColumnType } from 'kysely'

/** A column whose value the database assigns. */
export type Assigned<T> = ColumnType<T, never, never>
