import { define, type None } from './entry.js'

/** Errors of the store. */
export const storeErrors = {
  store_full: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'The disk of the server is full or read-only. Nothing was changed. Free space on the disk of the data directory, or of PostgreSQL if the store is there, and try again.',
  }),
  store_unavailable: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'The store of the server cannot be reached or does not answer in time. Nothing was changed. Try again in a moment.',
  }),
  store_outcome_unknown: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'The connection to the store was lost while the change was being saved. The change may or may not have been made. Check the current state before you try again.',
  }),
  store_damaged: define<{ table: string; found: string }>({
    status: 503,
    retry: 'later',
    text: ({ table, found }) =>
      `The store of the server is damaged where this request needs it (table ${table}: ${found}). Nothing was changed; other requests still work. The operator should run "homeport doctor --deep" and follow "A damaged store" in docs/operations.md.`,
  }),
  store_in_use: define<{ holder: string }>({
    status: 503,
    text: ({ holder }) =>
      `Another Homeport server already uses this PostgreSQL database (${holder}). Stop it first, or give this server its own database. If its machine has failed, PostgreSQL frees the database within 20 seconds; start again then.`,
  }),
  nodes_too_old: define<{ nodes: readonly string[]; step: string }>({
    status: 503,
    text: ({ nodes, step }) =>
      `This version changes the schema of the store (${step}), and running nodes do not work with the new one: ${nodes.join(', ')}. Upgrade one version at a time: bring all nodes to the version before this one first. Or stop all nodes, then start this one first.`,
  }),
  node_versions_apart: define<{ nodes: readonly string[]; isOlder: boolean }>({
    status: 503,
    text: ({ nodes, isOlder }) =>
      `This version cannot run beside nodes that are more than one version ${isOlder ? 'newer' : 'older'}: ${nodes.join(', ')}. ${isOlder ? 'Start their version here.' : 'Bring them to the version before this one first, or stop all nodes.'}`,
  }),
  node_name_taken: define<{ node: string; address: string; since: string }>({
    status: 503,
    text: ({ node, address, since }) =>
      `A node named "${node}" is running with another data directory (peer address ${address}, since ${since}). Give each node a name of its own with --node, or stop that one.`,
  }),
  node_config_differs: define<{ node: string; options: readonly string[] }>({
    status: 503,
    text: ({ node, options }) =>
      `All nodes of a cluster must have the same ${options.length === 1 ? 'value' : 'values'} of ${options.join(', ')}; on the running node "${node}" ${options.length === 1 ? 'it differs' : 'they differ'}. Use the same settings here, or stop all nodes to change them.`,
  }),
  node_user_differs: define<{ users: string }>({
    status: 503,
    text: ({ users }) =>
      `Other Homeport processes use this store as the PostgreSQL user ${users}. They and this node may not end each other's connections, as a node must when another one is dead. Use the same user in --store on all nodes, or grant the role pg_signal_backend to all of them.`,
  }),
  node_declared_dead: define<{ node: string }>({
    status: 503,
    retry: 'later',
    text: ({ node }) =>
      `The node "${node}" did not reach PostgreSQL in time, so the other nodes declared it dead and took over its work. This process ends and can be started again at once. Look for a machine that was paused or overloaded, or for a broken network.`,
  }),
  store_clock_differs: define<{ aheadMs: number }>({
    status: 503,
    text: ({ aheadMs }) =>
      `The clock of PostgreSQL is ${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine; at most 2 s are allowed. Synchronise both clocks (NTP) and start again.`,
  }),
  store_newer: define<{ number: number; name: string }>({
    status: 503,
    text: ({ number, name }) =>
      `The store was migrated by a newer Homeport (schema step ${number}, ${name}), which this version cannot read. Start the newer version.`,
  }),
  store_copy_unfinished: define<None>({
    status: 503,
    text: () =>
      'This store is an unfinished copy of another store, so no server may use it. Run the same "homeport store copy" again, which continues it, or use another store.',
  }),
  store_copy_refused: define<{ problem: string }>({
    status: 409,
    text: ({ problem }) => `${problem} Nothing was copied.`,
  }),
  store_copy_stopped: define<{ reason: string }>({
    status: 503,
    retry: 'later',
    text: ({ reason }) =>
      `The copy stopped: ${reason}. The source is unchanged. Remove the cause and run the same command again: it continues where it stopped.`,
  }),
  store_copy_differs: define<{ tables: readonly string[] }>({
    status: 500,
    text: ({ tables }) =>
      `After copying, ${tables.join(', ')} differ between source and target, so the copy is not usable. Another program changed one of them, or a disk returns wrong data. Run the same command again: it starts over.`,
  }),
  store_not_opened: define<{ where: string; reason: string }>({
    status: 503,
    text: ({ where, reason }) =>
      `The store at ${where} could not be opened: ${reason}. Check that it exists, that this user may access it, and that --store is correct.`,
  }),
} as const
