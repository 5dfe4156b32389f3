import { define, type None } from './entry.js'

/** Errors of the store. */
export const storeErrors = {
  store_full: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () =>
      'The disk of the server is full, nothing was changed. Free space on the disk of the data directory and try again.',
  }),
  store_unavailable: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () => 'The store of the server cannot be reached, nothing was changed. Try again in a moment.',
  }),
  store_outcome_unknown: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () =>
      'The store of the server was lost while the change was being saved; it may or may not have happened. Look at the current state before trying again.',
  }),
  store_damaged: define<{ table: string; found: string }>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: ({ table, found }) =>
      `The store of the server is damaged where this request needs it (table ${table}: ${found}). Nothing was changed; everything else works on. Its operator should run "homeport doctor --deep" and follow "A damaged store" in docs/operations.md.`,
  }),
  store_in_use: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: () =>
      'Another Homeport already works on this PostgreSQL database. Stop it first, or give this one a database of its own.',
  }),
  store_newer: define<{ number: number; name: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ number, name }) =>
      `The store has the schema step ${number} (${name}) of a newer Homeport, which this version cannot work with. Start the newer version.`,
  }),
  store_not_opened: define<{ where: string; reason: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ where, reason }) =>
      `The store at ${where} could not be opened: ${reason}. Check that it is there, that this user may use it, and that --store names it.`,
  }),
} as const
