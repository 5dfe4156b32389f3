import { define } from './entry.js'

/** Errors that stop the server or a command from starting: the configuration, the data directory, the engine program. */
export const operatorErrors = {
  invalid_config: define<{ problems: readonly string[] }>({
    status: 500,
    text: ({ problems }) =>
      `The configuration is not valid: ${problems.join('; ').replace(/[^?]$/, '$&.')} \`homeport start --help-all\` lists the options.`,
  }),
  cli_failed: define<{ problem: string }>({
    status: 500,
    text: ({ problem }) => problem,
  }),
  cli_misused: define<{ problem: string }>({
    status: 400,
    text: ({ problem }) => problem,
  }),
  cli_not_found: define<{ problem: string }>({
    status: 404,
    text: ({ problem }) => problem,
  }),
  cli_no_credentials: define<{ problem: string }>({
    status: 401,
    text: ({ problem }) => problem,
  }),
  server_refused: define<{ status: number; said: string }>({
    status: 500,
    text: ({ said }) => said,
  }),
  server_unreachable: define<{ url: string; reason: string }>({
    status: 503,
    retry: 'later',
    text: ({ url, reason }) =>
      `The server does not answer at ${url}: ${reason}. Start it with "npm start" or "homeport start", or choose another server with --profile.`,
  }),
  server_untrusted: define<{ url: string; reason: string }>({
    status: 500,
    text: ({ url, reason }) =>
      `The certificate of ${url} is not trusted (${reason}). If your own authority has signed it, set NODE_EXTRA_CA_CERTS=/path/to/ca.crt.`,
  }),
  data_dir_locked: define<{ directory: string; pid?: number | undefined }>({
    status: 500,
    text: ({ directory, pid }) =>
      `Another Homeport${pid === undefined ? '' : ` (process ${pid})`} already uses the data directory ${directory}. Stop it first, or start this server with another --data-dir.`,
  }),
  data_dir_unusable: define<{ directory: string; reason: string }>({
    status: 500,
    text: ({ directory, reason }) =>
      `The data directory ${directory} cannot be used: ${reason}. Correct this, or choose another directory with --data-dir.`,
  }),
  sqlite_driver_missing: define<{ node: string }>({
    status: 500,
    text: ({ node }) =>
      `Node ${node} has no complete SQLite driver, and the package better-sqlite3 is missing or was not compiled for it. Use Node 22.16 or newer, or 24; or install Homeport again without --omit=optional and with package scripts enabled.`,
  }),
  foreign_data_dir: define<{ directory: string }>({
    status: 500,
    text: ({ directory }) =>
      `The data directory ${directory} belongs to another store. Start with the store it was created with (see --store), or choose another data directory for this store with --data-dir.`,
  }),
  unknown_data: define<{ directory: string; databases: number; backups: number; known: number }>({
    status: 500,
    text: ({ directory, databases, backups, known }) =>
      `The store does not know ${databases} ${databases === 1 ? 'database' : 'databases'} and ${backups} ${backups === 1 ? 'backup' : 'backups'} in the data directory ${directory}; it knows ${known} ${known === 1 ? 'database' : 'databases'}. The store has lost its latest changes (homeport.sqlite-wal) or is an older copy. Restore the right store, or start with --accept-unknown-data quarantine, which moves the unknown files into quarantine/; "homeport db adopt" brings them back.`,
  }),
  store_missing: define<{ directory: string; databases: number }>({
    status: 500,
    text: ({ directory, databases }) =>
      `The data directory ${directory} holds the files of ${databases} ${databases === 1 ? 'database' : 'databases'}, but its store (homeport.sqlite) is missing or empty. Restore the store, or start with a new store and --accept-unknown-data quarantine, which moves these files into quarantine/; "homeport db adopt" brings them back.`,
  }),
  credentials_unusable: define<{ path: string; reason: string }>({
    status: 500,
    text: ({ path, reason }) =>
      `The credentials file ${path} cannot be used: ${reason}. Restore the right file, or move it away to continue without it.`,
  }),
  engine_missing: define<{ looked: string }>({
    status: 503,
    text: ({ looked }) =>
      `No engine was found (looked for ${looked}). Install one, for example with "apt-get install redis-server" or "brew install valkey", or set the path of its program with --engine-binary.`,
  }),
  engine_unusable: define<{ binary: string; problem: string }>({
    status: 503,
    text: ({ binary, problem }) =>
      `The engine ${binary} cannot be used: ${problem}. Correct this, or set the path of another one with --engine-binary.`,
  }),
  no_web_assembly: define<{ reason: string }>({
    status: 500,
    text: ({ reason }) =>
      `WebAssembly, which deliveries need, does not work in this process (${reason}). Lift the limit of its address space (\`ulimit -v unlimited\`), or start Node without --jitless.`,
  }),
  no_temporary_folder: define<{ tried: string }>({
    status: 503,
    text: ({ tried }) =>
      `No folder for temporary files can be used (${tried}). Free space in one of them, or set TMPDIR to another one with a short path.`,
  }),
  engine_unsafe_version: define<{ problem: string }>({
    status: 503,
    text: ({ problem }) =>
      `The engine is refused: ${problem} Update it, or accept the risk with --engine-allow-unsafe-version.`,
  }),
  tls_not_configured: define<{ databaseId: string }>({
    status: 412,
    resp: 'ERR',
    text: ({ databaseId }) =>
      `The database ${databaseId} requires TLS, but this server has no certificate. Configure one, or create the database without TLS.`,
  }),
  tls_files_unusable: define<{ file: string; problem: string }>({
    status: 500,
    text: ({ file, problem }) =>
      `The certificate for TLS cannot be used (${file}): ${problem}. Correct --tls-cert-file and --tls-key-file.`,
  }),
  tls_authority_unusable: define<{ file: string; problem: string }>({
    status: 500,
    text: ({ file, problem }) =>
      `The local certificate authority cannot be used (tls/${file}): ${problem}. Restore the file from a copy of the data directory and start again. Or delete the folder tls/ of the data directory: the server then creates a new authority, and every client that trusts the old tls/ca.crt needs the new one.`,
  }),
  port_taken: define<{ port: number }>({
    status: 503,
    retry: 'later',
    text: ({ port }) => `Port ${port} is in use by another program. Stop that program, or choose another port.`,
  }),
}
