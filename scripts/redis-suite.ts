/**
 * `npm run redis-suite -- --suite <folder> [--nodes 3] [--single unit/type/list ...]`: runs the tests of Redis 7.0 for
 * external servers against a database, file by file. The folder is the source code of Redis (`tests/`), which is not part
 * of Homeport; `tclsh` runs it. With `--nodes`, the tests talk to a node of a cluster that is not the home. The suite
 * supports no passwords, so a proxy logs its connections in. Which tests are expected to fail: docs/redis.md.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import type { DatabaseRecord } from '../src/contract/databases/databases.js'
import { DEFAULT_PLANS, NO_LIMIT } from '../src/contract/databases/plans.js'
import { startAmongNodes } from '../test/support/among-nodes.js'
import { call, cleanup, startHomeport, tempDir } from '../test/support/index.js'

/** Skips tests that need `DEBUG` or attach to the replication stream: databases support neither. */
const TAGS = '-needs:debug -needs:repl'

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: { suite: text, nodes: { ...text, default: '1' }, single: { ...text, multiple: true, default: [] } },
})

/** Starts the server, and creates a database whose limits the suite does not reach. */
async function startDatabase(nodes: number): Promise<Required<DatabaseRecord>> {
  const plansFile = join(tempDir(), 'plans.json')
  const high = { db_max_commands_per_second: NO_LIMIT, db_max_request_size: 2 ** 29, db_max_entry_size: NO_LIMIT }
  writeFileSync(plansFile, JSON.stringify({ payg: { ...DEFAULT_PLANS.payg, ...high, price_per_100k_commands: 0 } }))
  const options = { args: ['--plans-file', plansFile] }
  const [homeport] = nodes > 1 ? (await startAmongNodes(nodes, options)).nodes : [await startHomeport(options)]
  if (!homeport) throw new Error('no node was started')
  const body = { database_name: 'suite', platform: 'aws', primary_region: 'us-east-1', eviction: true, plan: 'payg' }
  const made = await homeport.api('POST', '/v2/redis/database', body)
  if (made.status !== 200) throw new Error(`the database was not created: ${JSON.stringify(made.body)}`)
  const database = made.body as Required<DatabaseRecord>
  // Latency tracking is on in a plain engine.
  const headers = { authorization: `Bearer ${database.rest_token}` }
  const json = ['CONFIG', 'SET', 'latency-tracking', 'yes']
  const set = await call(database.rest_url, { method: 'POST', headers, json })
  if (set.status !== 200) throw new Error(`latency-tracking was not set: ${JSON.stringify(set.body)}`)
  return database
}

/** A port whose connections are logged in to the database. Resolves with the port. */
async function loggedIn({ port, password }: Required<DatabaseRecord>): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const database = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    for (const end of [client, database]) end.on('error', () => undefined)
    client.on('close', () => database.destroy())
    database.on('close', () => client.destroy())
    database.write(`AUTH ${password}\r\n`)
    database.once('data', (answer: Buffer) => {
      database.pause()
      if (answer.length > '+OK\r\n'.length) database.unshift(answer.subarray('+OK\r\n'.length))
      client.pipe(database).pipe(client)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return (server.address() as AddressInfo).port
}

/** The files of the suite that test commands. */
function allFiles(suite: string): string[] {
  const [, list = ''] =
    /set ::all_tests \{([^}]*)\}/.exec(readFileSync(join(suite, 'tests/test_helper.tcl'), 'utf8')) ?? []
  return list.split(/\s+/).filter((name) => name.startsWith('unit/') && !name.startsWith('unit/cluster'))
}

/** Runs a file in its own process, so that an uncaught error ends only that file. Resolves with the lines of the report. */
async function runFile(suite: string, file: string, port: number): Promise<string[]> {
  const flags = ['--host', '127.0.0.1', '--port', String(port), '--singledb', '--tags', TAGS, '--single', file]
  const tests = spawn('tclsh', ['tests/test_helper.tcl', ...flags], {
    cwd: suite,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  tests.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  await new Promise((resolve) => tests.once('close', resolve))
  return stripVTControlCharacters(output).split('\n')
}

const { suite, nodes, single } = values
if (suite === undefined) throw new Error('say where the source code of Redis is: --suite <folder>')
try {
  const port = await loggedIn(await startDatabase(Number(nodes)))
  let passed = 0
  let failed = 0
  for (const file of single.length > 0 ? single : allFiles(suite)) {
    const lines = await runFile(suite, file, port)
    const ok = lines.filter((line) => line.startsWith('[ok]')).length
    const problems = lines.flatMap((line, at) => (/^\[(?:err|exception)\]/.test(line) ? [[line, lines[at + 1]]] : []))
    console.log([`${file}: ${ok} passed, ${problems.length} failed`, ...problems.flat()].join('\n  '))
    passed += ok
    failed += problems.length
  }
  console.log(`${passed} passed, ${failed} failed`)
} finally {
  await cleanup()
}
