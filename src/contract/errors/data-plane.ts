import { define, type None } from './entry.js'

/** Errors of the data plane. `resp` is the first word of the text, on the Redis protocol and over REST. */
export const dataPlaneErrors = {
  data_unauthorized: define<None>({
    status: 401,
    resp: 'WRONGPASS',
    text: () => 'invalid or missing auth token',
  }),
  logins_slowed: define<{ afterSeconds: number }>({
    status: 429,
    resp: 'ERR',
    retry: 'later',
    text: ({ afterSeconds }) => `too many failed logins from this address. Try again in ${afterSeconds} seconds.`,
  }),
  command_not_available: define<{ name: string; engines?: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ name, engines }) =>
      `Command is not available: '${name}'${engines === undefined ? '' : `. The engine of this database lacks it: ${engines}`}`,
  }),
  command_unknown: define<{ name: string; args: readonly string[] }>({
    status: 400,
    resp: 'ERR',
    // Clients and tools match this text of the engines. Arguments are cut to the length that engines show.
    text: ({ name, args }) =>
      `unknown command '${name.slice(0, 128)}', with args beginning with: ${args.map((arg) => `'${arg}' `).join('')}`,
  }),
  subcommand_unknown: define<{ container: string; name: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ container, name }) => `unknown subcommand '${name.slice(0, 128)}'. Try ${container} HELP.`,
  }),
  command_forbidden: define<{ name: string }>({
    status: 400,
    resp: 'NOPERM',
    text: ({ name }) => `this user has no permissions to run the '${name}' command`,
  }),
  acl_not_on_plan: define<{ plan: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ plan }) =>
      `Plan "${plan}" does not include ACL users. Move the database to a paid plan: POST /v2/redis/{id}/change-plan.`,
  }),
  command_not_for_rest: define<{ name: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ name }) => `Command "${name}" is not allowed in REST or it has a special context path`,
  }),
  command_malformed: define<{ problem: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ problem }) => problem,
  }),
  too_many_commands: define<{ limit: number }>({
    status: 413,
    resp: 'ERR',
    text: ({ limit }) => `max commands of one request exceeded. Limit: ${limit}. Send them in several requests.`,
  }),
  too_many_arguments: define<{ limit: number; of: 'command' | 'request' }>({
    status: 413,
    resp: 'ERR',
    text: ({ limit, of }) =>
      `max arguments of one ${of} exceeded. Limit: ${limit}. ${of === 'command' ? 'Send several commands.' : 'Send several requests.'}`,
  }),
  reply_too_deep: define<{ limit: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ limit }) =>
      `the reply is nested too deeply for JSON. Limit: ${limit} levels. The command has been executed. Request less, or send Upstash-Response-Format: resp2.`,
  }),
  request_too_large: define<{ limitBytes: number; actualBytes: number }>({
    status: 413,
    resp: 'ERR',
    text: ({ limitBytes, actualBytes }) =>
      `max request size exceeded. Limit: ${limitBytes} bytes, Actual: ${actualBytes} bytes`,
  }),
  replies_too_large: define<{ limitBytes: number }>({
    status: 413,
    resp: 'ERR',
    text: ({ limitBytes }) =>
      `max request size exceeded. Limit: ${limitBytes} bytes for all replies of one request together. The commands with these replies have been executed, later ones perhaps not. Request less at once.`,
  }),
  answer_too_long: define<{ limitBytes: number }>({
    status: 413,
    resp: 'ERR',
    text: ({ limitBytes }) =>
      `max request size exceeded. Limit: ${limitBytes} bytes for a JSON response. The commands have been executed. Request less at once, or send Upstash-Response-Format: resp2.`,
  }),
  memory_short: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () =>
      'The buffers of the server for clients that send or read slowly are full, mostly with data of this database or account. A complete request may have been executed. Try again in a moment, with less at once.',
  }),
  address_not_allowed: define<{ address: string }>({
    status: 403,
    resp: 'ERR',
    text: ({ address }) =>
      `address ${address} is not in the allow list of this database. Its owner can add it: POST /v2/redis/update-allowlist/{id}.`,
  }),
  key_too_large: define<{ limitBytes: number; actualBytes: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ limitBytes, actualBytes }) =>
      `max key size exceeded. Limit: ${limitBytes} bytes, Actual: ${actualBytes} bytes`,
  }),
  entry_too_large: define<{ limitBytes: number; actualBytes: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ limitBytes, actualBytes }) =>
      `max single record size exceeded. Limit: ${limitBytes} bytes, Actual: ${actualBytes} bytes`,
  }),
  data_too_large: define<{ thresholdBytes: number; usageBytes: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ thresholdBytes, usageBytes }) =>
      `DB capacity quota exceeded. Threshold: ${thresholdBytes} bytes, Usage: ${usageBytes} bytes`,
  }),
  disk_nearly_full: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () =>
      'The disk of the server is nearly full, so databases refuse writes that add data. Reads and deletes still work: delete data, or ask the operator to free space on the disk of the data directory.',
  }),
  request_limit: define<{ limit: number; usage: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ limit, usage }) => `max requests limit exceeded. Limit: ${limit}, Usage: ${usage}`,
  }),
  pending_entries: define<{
    /** Spelled as in the error text of the engines. */
    command: 'XReadGroup' | 'XClaim' | 'XAutoClaim'
    limit: number
    pendingEntries: number
    requested: number
    key: string
    group: string
    consumer: string
  }>({
    status: 400,
    resp: 'ERR',
    text: ({ command, limit, pendingEntries, requested, key, group, consumer }) =>
      `${command} is cancelled. Pending Entries List limit per consumer is about to be reached. Limit: ${limit}, Current PEL size: ${pendingEntries}, Requested Read: ${requested}, Key: ${key}, Group: ${group}, Consumer: ${consumer}.`,
  }),
  script_credits: define<{ limitMs: number; usedMs: number }>({
    status: 400,
    resp: 'ERR',
    text: ({ limitMs, usedMs }) =>
      `max script time exceeded. Limit: ${limitMs} ms per minute, Usage: ${usedMs} ms. Scripts run again in the next minute`,
  }),
  budget_exceeded: define<None>({
    status: 400,
    resp: 'ERR',
    text: () =>
      'This database has been suspended for exceeding the defined budget limit. Please increase budget or switch to a Fixed plan',
  }),
  database_suspended: define<{ databaseId: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ databaseId }) =>
      `This database has been suspended by its owner. Its data is kept. The owner can resume it: homeport db resume ${databaseId}`,
  }),
  account_suspended: define<None>({
    status: 403,
    resp: 'ERR',
    text: () =>
      'This account has been suspended by the operator of the server. Its data is kept. Ask the operator to resume it.',
  }),
  tls_required: define<None>({
    status: 400,
    resp: 'ERR',
    text: () =>
      'This port accepts TLS only, and this connection began without TLS. Connect with TLS, for example with a rediss:// URL.',
  }),
  server_name_unknown: define<{ name?: string }>({
    status: 400,
    resp: 'ERR',
    text: ({ name }) =>
      `${name === undefined ? 'The TLS handshake had no server name' : `No database has the host name "${name}"`}. Connect to the endpoint in the record of the database, with a TLS client that sends the server name (SNI).`,
  }),
  too_many_clients: define<None>({
    status: 429,
    resp: 'ERR',
    retry: 'later',
    text: () => 'max concurrent connections exceeded',
  }),
  too_many_monitors: define<{ limit: number }>({
    status: 429,
    resp: 'ERR',
    retry: 'later',
    text: ({ limit }) => `max clients with MONITOR exceeded. Limit: ${limit}`,
  }),
  engine_failed: define<{ reason: string }>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: ({ reason }) =>
      `The engine of this database is not available: ${reason}. Try again in a moment; the server's log has the details.`,
  }),
  data_missing: define<{ databaseId: string; reason: string }>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: ({ databaseId, reason }) =>
      `The data of this database is missing on the server (${reason}), so it is not served. Its owner can restore a backup, or accept the loss: homeport db accept-loss ${databaseId}.`,
  }),
  data_unreadable: define<{ databaseId: string; reason: string }>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: ({ databaseId, reason }) =>
      `The data of this database is damaged on the server (${reason}), so its engine does not start. Its owner can restore a backup, or accept the loss: homeport db accept-loss ${databaseId}.`,
  }),
  engine_held_by_script: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () =>
      'A script ran longer than the plan of this database allows and could not be killed, so the engine was killed and restarts. The writes of the script are lost. Another command without a reply may or may not have been applied: check, or repeat it if that is safe.',
  }),
  engine_lost: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () =>
      'The engine of this database stopped before it replied. The command may or may not have been applied: check, or repeat it if that is safe.',
  }),
  engine_unavailable: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () => 'The engine of this database cannot be reached. Nothing was applied; try again in a moment.',
  }),
} as const
