import { define, type None } from './entry.js'

/** Errors of the store. */
export const storeErrors = {
  store_full: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () =>
      'The disk of the server is full. Nothing was changed. Free space on the disk of the data directory and try again.',
  }),
  store_unavailable: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () => 'The store of the server cannot be reached. Nothing was changed. Try again in a moment.',
  }),
  store_outcome_unknown: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () =>
      'The connection to the store was lost while the change was being saved. The change may or may not have been made. Check the current state before you try again.',
  }),
  store_damaged: define<{ table: string; found: string }>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: ({ table, found }) =>
      `The store of the server is damaged where this request needs it (table ${table}: ${found}). Nothing was changed; other requests still work. The operator should run "homeport doctor --deep" and follow "A damaged store" in docs/operations.md.`,
  }),
  store_in_use: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: () =>
      'Another Homeport server already uses this PostgreSQL database. Stop it first, or give this server its own database.',
  }),
  store_newer: define<{ number: number; name: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ number, name }) =>
      `The store was migrated by a newer Homeport (schema step ${number}, ${name}), which this version cannot read. Start the newer version.`,
  }),
  store_not_opened: define<{ where: string; reason: string }>({
    status: 503,
    blame: 'operator',
    retry: 'never',
    text: ({ where, reason }) =>
      `The store at ${where} could not be opened: ${reason}. Check that it exists, that this user may access it, and that --store is correct.`,
  }),
} as const
