import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { startSink } from '../../src/queue/testing/sink.js'
import {
  atCleanup,
  childEnv,
  MAIN_JS,
  placeFlags,
  type RunningHomeport,
  run,
  runHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../support/index.js'
import { signedIn } from './signed-in.js'

/** The built command against one real server. */

let homeport: RunningHomeport
let sink: Awaited<ReturnType<typeof startSink>>
const { credentials, cli, cliAlone, works, json } = signedIn(() => homeport)

beforeAll(async () => {
  homeport = await startHomeport()
  sink = await startSink()
  atCleanup(() => sink.close())
})

describe('databases', () => {
  it('are created with every field, found by name, used with binary values, and deleted', async () => {
    const flags = '--region eu-west-1 --read-regions us-east-1 --plan fixed_1gb --budget 20 --eviction --no-tls'
    const made = await json('db', 'create', '--name', 'shop', ...flags.split(' '))
    const asked = { primary_region: 'eu-west-1', read_regions: ['us-east-1'], budget: 20, eviction: true, tls: false }
    expect(made).toMatchObject({ database_name: 'shop', type: 'paid', ...asked })
    expect(await works('db', 'list')).toMatch(/^NAME +STATE +PLAN.*\nshop +awake +fixed \d+ GB +eu-west-1 us-east-1 /)
    const bytes = 'not\u0000text'
    const set = (key: string, input: string) => cli(['db', 'exec', 'shop', '--stdin', '--', 'set', key], { input })
    expect(await set('k', bytes)).toMatchObject({ code: 0, stdout: 'OK\n' })
    expect((await cli(['db', 'exec', 'shop', '--raw', '--', 'get', 'k'])).stdout).toBe(bytes)
    expect((await set('..', '["flushall"]')).code).toBe(2)
    expect(await works('db', 'exec', 'shop', '--', 'dbsize')).toBe('(integer) 1\n')
    expect((await json('db', 'budget', made.database_id, '30')).budget).toBe(30)
    const refused = await cli(['db', 'delete', 'shop'])
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/pass --yes to confirm\. Nothing was changed\.\n$/),
    })
    expect(await works('db', 'delete', 'shop', '--yes')).toContain('deleted shop')
    expect((await homeport.api('GET', '/v2/redis/databases')).body).toEqual([])
  })

  it('show their usage: rates below one a second, and the limit that applies', async () => {
    await json('db', 'create', '--name', 'used', '--region', 'eu-west-1', '--plan', 'payg')
    await works('db', 'exec', 'used', '--', 'set', 'k', 'v')
    const stats = await works('db', 'stats', 'used')
    expect(stats).toMatch(/^size +[\d.]+ K?B of 3 GB\n(.*\n)*commands per second .* [\d.]*[1-9][\d.]*\n/m)
    await works('db', 'delete', 'used', '--yes')
  })

  it('have users that are created, changed, given a new password and deleted', async () => {
    await json('db', 'create', '--name', 'shared', '--region', 'eu-west-1', '--plan', 'payg')
    const set = async (...rules: string[]) =>
      JSON.parse(await works('db', 'users', 'set', 'shared', 'alice', '--json', '--', ...rules))
    const alice = await set('~news:*', '+@read')
    expect(alice).toMatchObject({ name: 'alice', isOn: true, passwords: 1, keys: ['news:*'], commands: ['+@read'] })
    const { rest_url: url } = await json('db', 'get', 'shared')
    const get = async (token: string, key: string) => {
      const response = await fetch(`${url}/get/${key}`, { headers: { authorization: `Bearer ${token}` } })
      return response.status
    }
    expect(await get(alice.restToken, 'news:1')).toBe(200)
    expect(await get(alice.restToken, 'other')).toBe(400)
    const changed = await set('~other', '+get')
    expect(changed).toMatchObject({ passwords: 1, keys: ['other'], commands: ['+get'] })
    expect(changed).not.toHaveProperty('password')
    expect(await get(alice.restToken, 'other')).toBe(200)
    const renewed = await json('db', 'users', 'password', 'shared', 'alice', '--yes')
    expect([await get(alice.restToken, 'other'), await get(renewed.restToken, 'other')]).toEqual([401, 200])
    expect(await works('db', 'users', 'list', 'shared')).toMatch(/\nalice +on +1 +other +\+get/)
    expect(await cli(['db', 'users', 'delete', 'shared', 'default', '--yes'])).toMatchObject({ code: 2 })
    expect(await works('db', 'users', 'delete', 'shared', 'alice', '--yes')).toBe('deleted alice\n')
    expect(await cli(['db', 'users', 'delete', 'shared', 'alice', '--yes'])).toMatchObject({ code: 3 })
  })

  it('export their keys to a file and import them from it, with every type, expiry and binary names', async () => {
    const send = async (path: string, body: unknown) => {
      const { rest_url, rest_token } = await json('db', 'get', 'shared')
      const headers = { authorization: `Bearer ${rest_token}`, 'upstash-encoding': 'base64' }
      return (await fetch(rest_url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    }
    const all = ['text', 'hash', 'list', 'set', 'zset', 'stream']
    const state = async () => [
      await send(
        '/pipeline',
        all.flatMap((key) => [
          ['DUMP', key],
          ['PEXPIRETIME', key],
        ]),
      ),
      await send('/dump/%ff%00%2f', undefined),
    ]
    await send('/pipeline', [
      ['SET', 'text', 'a value', 'EX', 10_000],
      ['HSET', 'hash', 'field', 'value'],
      ['RPUSH', 'list', 'a', 'b'],
      ['SADD', 'set', 'x'],
      ['ZADD', 'zset', 1.5, 'a'],
      ['XADD', 'stream', '1-1', 'level', 'info'],
    ])
    await send('/set/%ff%00%2f/binary', undefined)
    const before = await state()
    const file = join(tempDir(), 'keys.jsonl')
    expect((await cli(['db', 'keys', 'export', 'shared', file])).stdout).toContain('7 keys')
    const output = await cli(['db', 'keys', 'export', 'shared', '-'])
    expect([output.stdout.trim().split('\n').length, output.stderr]).toEqual([9, expect.stringContaining('7 keys')])
    await send('/pipeline', [['FLUSHALL'], ['SET', 'text', 'newer']])
    expect(await works('db', 'keys', 'import', 'shared', file)).toBe('6 imported, 1 skipped\n')
    expect(await cli(['db', 'keys', 'import', 'shared', file, '--replace'])).toMatchObject({ code: 2 })
    expect(await works('db', 'keys', 'import', 'shared', file, '--replace', '--yes')).toBe('0 imported, 7 replaced\n')
    expect(await state()).toEqual(before)
    const cut = readFileSync(file, 'utf8').split('\n').slice(0, 2).join('\n')
    const partly = await cli(['db', 'keys', 'import', 'shared', '-', '--json'], { input: cut })
    const [key, end] = partly.stdout.split('\n')
    expect([partly.code, key]).toEqual([1, expect.stringContaining('"line":2,"outcome":"skipped"')])
    expect(JSON.parse(end ?? '')).toMatchObject({ end: 'cut', skipped: 1, failed: 0 })
    await works('db', 'delete', 'shared', '--yes')
  })

  it('fail with an exit code for the kind of failure', async () => {
    expect(await cliAlone(['db', 'get', 'nobody'])).toMatchObject({ code: 3 })
    expect(await cli(['db', 'lst'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Did you mean list?'),
    })
    expect(await cli(['db', 'list'], { env: { HOMEPORT_API_KEY: 'wrong' } })).toMatchObject({ code: 4 })
    expect(await cli(['db', 'list'], { env: { HOMEPORT_API_URL: 'http://127.0.0.1:1' } })).toMatchObject({
      code: 5,
    })
  })
})

describe('messages', () => {
  it('are published with their settings, listed, and sent again from the dead letters', async () => {
    sink.answer = () => (sink.received.length === 1 ? { status: 500 } : {})
    const flags = ['--header', 'X-Order: 7', '--retries', '0', '--label', 'orders', '--file', '-']
    const published = await cli(['queue', 'publish', sink.url, ...flags, '--json'], { input: 'body' })
    const { messageId } = JSON.parse(published.stdout)
    const dead = async () => (await json('queue', 'dlq', 'list', '--label', 'orders')).messages
    await waitFor(async () => (await dead()).length === 1, { what: 'a dead letter' })
    const retried = await cli(['queue', 'dlq', 'retry', '--label', 'orders'])
    expect(retried).toMatchObject({ code: 0, stdout: 'finished: 1 dead letter, 1 sent again\n' })
    await waitFor(() => sink.received.length === 2, { what: 'the second delivery' })
    expect(sink.received[1]?.headers['x-order']).toBe('7')
    expect(sink.received[1]?.body.toString()).toBe('body')
    const logs = await json('queue', 'logs', '--message', messageId)
    expect(logs.logs.map(({ state }: { state: string }) => state)).toContain('FAILED')
  })

  it('are sent again once each, even if they fail again meanwhile', async () => {
    sink.answer = () => ({ status: 500 })
    sink.received.length = 0
    const count = 250
    const item = { destination: sink.url, headers: { 'upstash-retries': '0', 'upstash-label': 'hopeless' } }
    await homeport.queue('POST', '/v2/batch', Array(count).fill(item))
    const hopeless = 'label=hopeless&count=100'
    const dead = async () => (await homeport.queue('GET', `/v2/dlq?${hopeless}`)).body as { cursor?: string }
    await waitFor(async () => sink.received.length === count && (await dead()).cursor !== undefined, {
      what: 'all to have failed',
    })
    const retried = await cli(['queue', 'dlq', 'retry', '--label', 'hopeless'])
    expect(retried).toMatchObject({ code: 0, stdout: `finished: ${count} dead letters, ${count} sent again\n` })
    await waitFor(() => sink.received.length >= 2 * count, { what: 'the second attempts' })
    expect(sink.received).toHaveLength(2 * count)
    const deleted = await cli(['queue', 'dlq', 'delete', '--label', 'hopeless', '--yes'])
    expect(deleted).toMatchObject({ code: 0, stdout: expect.stringMatching(/^finished: /) })
  })

  it('are followed to their end, or by filters until the command is stopped', async () => {
    sink.answer = () => ({ status: 200 })
    const { messageId } = await json('queue', 'publish', sink.url, '--label', 'watched')
    expect(await works('queue', 'watch', messageId)).toMatch(/ published .*\n(.*\n)*.* delivered .*HTTP 200 /)
    expect(await cli(['queue', 'watch', 'msg_none'])).toMatchObject({ code: 3 })

    const args = ['queue', 'watch', '--label', 'watched', '--from', '1h', '--json']
    const child = spawn(process.execPath, [MAIN_JS, ...args], { env: childEnv(credentials()) })
    atCleanup(() => void child.kill('SIGKILL'))
    let lines: string[] = []
    child.stdout.on('data', (bytes) => (lines = [...lines, ...String(bytes).trim().split('\n')]))
    const states = () => lines.map((line) => JSON.parse(line).state)
    await waitFor(() => states().includes('DELIVERED'), { what: 'what was there before' })
    await works('queue', 'publish', sink.url, '--label', 'watched')
    await waitFor(() => states().filter((state) => state === 'DELIVERED').length === 2, { what: 'what came later' })
    expect(new Set(lines).size).toBe(lines.length)
    const errors: string[] = []
    child.stderr.on('data', (bytes) => errors.push(String(bytes)))
    const ended = once(child, 'exit')
    child.stdout.destroy()
    await works('queue', 'publish', sink.url, '--label', 'watched')
    expect([await ended, errors]).toEqual([[0, null], []])
  })

  it('are cancelled only with a selection', async () => {
    const later = ['queue', 'publish', sink.url, '--delay', '1h', '--label', 'later']
    await works(...later)
    expect(await cli(['queue', 'messages', 'cancel', '--yes'])).toMatchObject({ code: 2 })
    expect(await works('queue', 'messages', 'cancel', '--label', 'later', '--yes')).toBe('cancelled 1 message\n')
  })
})

describe('runs', () => {
  it('are listed, then cancelled in bulk, and the action reports it', async () => {
    sink.answer = () => ({ silent: true })
    await works('runs', 'trigger', sink.url, '--label', 'slow', '--run-id', 'one', '--delay', '1h')
    const headers = { 'upstash-label': 'slow', 'upstash-delay': '1h' }
    for (let i = 0; i < 2; i++) await homeport.queue('POST', `/v2/trigger/${sink.url}`, {}, headers)
    expect(await works('runs', 'explain', 'one')).toContain('delayed until')
    const selector = ['--url', sink.url, '--label', 'slow', '--from', '1h']
    expect(await works('runs', 'cancel', ...selector, '--dry-run')).toMatch(/^would cancel 3 runs\n/)
    const { code, stdout } = await cli(['runs', 'cancel', ...selector, '--yes', '--reason', 'a test'])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^finished: 3 runs, 3 cancelled\nto undo it: /),
    })
    expect(await json('runs', 'cancel', ...selector, '--yes')).toEqual({ cancelled: 0 })
    // No run matches any more, so the command asks for no confirmation.
    expect(await works('runs', 'cancel', ...selector)).toBe('No active run matches. Nothing was changed.\n')
    const { bulkActions } = await json('bulk', 'list')
    expect(bulkActions[1]).toMatchObject({ matched: 3, cancelled: 3, reason: 'a test' })
    expect(await works('bulk', 'outcomes', bulkActions[1].actionId)).toMatch(/one +cancelled/)
  })

  it('are paused by filters, listed, and unpaused', async () => {
    for (const id of ['held-1', 'held-2']) {
      await works('runs', 'trigger', sink.url, '--label', 'held', '--run-id', id, '--delay', '1h')
    }
    expect(await works('runs', 'pause', '--label', 'held', '--dry-run')).toBe('2 active runs\n')
    expect(await cli(['runs', 'pause'])).toMatchObject({ code: 2 })
    const paused = await cli(['runs', 'pause', '--label', 'held', '--reason', 'a test'])
    expect(paused).toMatchObject({ code: 0, stdout: 'finished: 2 runs, 2 paused\n' })
    const { runs } = await json('runs', 'list', '--paused')
    const ids = runs.map(({ workflowRunId }: { workflowRunId: string }) => workflowRunId)
    expect(ids.sort()).toEqual(['held-1', 'held-2'])
    expect(await works('runs', 'unpause', 'held-1')).toBe('unpaused: held-1\n')
    const others = await cli(['runs', 'unpause', '--label', 'held', '--state', 'paused'])
    expect(others).toMatchObject({ code: 0, stdout: 'finished: 1 run, 1 unpaused\n' })
    expect(await json('runs', 'list', '--paused')).toMatchObject({ runs: [] })
    expect(await cli(['runs', 'cancel', '--label', 'held', '--yes'])).toMatchObject({ code: 0 })
  })

  it('are paused with their workflow, also those that start later, until it is resumed', async () => {
    const url = `${sink.url}/flow`
    const start = (id: string) => works('runs', 'trigger', url, '--label', 'flow', '--run-id', id, '--delay', '1h')
    await start('flow-1')
    const paused = await cli(['workflows', 'pause', url, '--reason', 'a test'])
    expect(paused).toMatchObject({ code: 0, stdout: 'finished: 1 run, 1 paused\n' })
    await start('flow-2')
    expect(await json('workflows', 'list')).toMatchObject([{ workflowUrl: url, paused: { reason: 'a test' } }])
    expect(await works('runs', 'explain', 'flow-2')).toContain('its workflow was paused')
    const resumed = await cli(['workflows', 'resume', url])
    expect(resumed).toMatchObject({ code: 0, stdout: 'finished: 2 runs, 2 unpaused\n' })
    expect(await works('workflows', 'list')).toBe('No workflow is paused.\n')
    expect(await cli(['runs', 'cancel', '--label', 'flow', '--yes'])).toMatchObject({ code: 0 })
  })

  it('are followed to their end', async () => {
    await works('runs', 'trigger', sink.url, '--run-id', 'followed', '--delay', '1h')
    const watching = cli(['runs', 'watch', 'followed'])
    await homeport.queue('DELETE', '/v2/workflows/runs/followed')
    const { code, stdout } = await watching
    expect(code).toBe(1)
    expect(stdout).toMatch(/ {2}active {2}run\n(.*\n)*.* {2}cancelled {2}next step\n.* {2}cancelled {2}run\n$/)
    expect(await cli(['runs', 'watch', 'none'])).toMatchObject({ code: 3 })
  })

  it('are restarted from a step with another payload, once for each new run id', async () => {
    const payload = join(tempDir(), 'payload')
    writeFileSync(payload, 'another')
    await works('runs', 'trigger', sink.url, '--run-id', 'first', '--delay', '1h', '--body', 'a payload')
    const restart = ['runs', 'restart', 'first', '--from-step', '1', '--run-id', 'second', '--delay', '1h']
    expect(await works(...restart, '--payload', `@${payload}`)).toBe('restarted from step 1: second\n')
    expect(await works(...restart)).toBe('second already exists\n')
    const { steps, origin } = await json('runs', 'show', 'second')
    expect([steps[0].steps[0].out, origin]).toMatchObject(['another', { workflowRunId: 'first', stepId: 1 }])
    expect(await works('runs', 'explain', 'second')).toContain('It was restarted from first, step 1.')
    expect(await cli(['runs', 'restart', 'first', '--result', '1=true'])).toMatchObject({ code: 2 })
    expect(await cli([...restart, '--result', '1=no json'])).toMatchObject({ code: 2 })
    expect(await cli(['runs', 'restart', 'first', '--from-step', '2'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('step 1 has no result'),
    })
  })
})

describe('the server that commands talk to', () => {
  it('is stored as a profile that only its owner may read, and selected by name, environment or flag', async () => {
    const home = tempDir()
    const env = { XDG_CONFIG_HOME: home, HOMEPORT_API_URL: '', QSTASH_URL: '' }
    const printed = await cli(['env', '--json', ...placeFlags(homeport.place)])
    const login = await cli(['login', '--name', 'here'], { input: printed.stdout, env })
    expect(login).toMatchObject({ code: 0, stdout: expect.stringContaining('profile "here"') })
    expect(statSync(join(home, 'homeport', 'profiles.json')).mode & 0o777).toBe(0o600)
    const list = await cli(['profile', 'list'], { env })
    expect(list.stdout).toContain(`*  here  ${homeport.apiUrl}`)
    expect(list.stdout).not.toContain(homeport.credentials.apiKey)
    for (const args of [
      ['keys', 'list'],
      ['queue', 'queues', 'list', '--profile', 'here'],
    ])
      expect(await cli(args, { env })).toMatchObject({ code: 0 })
    expect(await cli(['keys', 'list', '--profile', 'there'], { env })).toMatchObject({ code: 3 })
    expect(
      await cli(['keys', 'list', ...placeFlags(homeport.place)], { env: { HOMEPORT_API_URL: 'http://127.0.0.1:1' } }),
    ).toMatchObject({ code: 0 })
  })

  it('is never derived from the variables of a queue service alone', async () => {
    const env = { HOMEPORT_API_URL: '', XDG_CONFIG_HOME: tempDir() }
    const { code, stderr } = await cli(['queue', 'logs'], { env, cwd: tempDir() })
    expect(code).toBe(4)
    expect(stderr).toContain('There are no credentials at')
  })

  it('fails on a profiles file with an invalid shape', async () => {
    const home = tempDir()
    mkdirSync(join(home, 'homeport'))
    writeFileSync(join(home, 'homeport', 'profiles.json'), '{"profiles": {"x": {}}}')
    const { code, stderr } = await cli(['profile', 'list'], { env: { XDG_CONFIG_HOME: home } })
    expect(code).toBe(1)
    expect(stderr).toContain('Correct it')
  })
})

it('the command line finds the server of a data directory at its actual ports', async () => {
  const { apiUrl, queueUrl, place } = homeport
  const { stdout } = await runHomeport(['env', '--json', '--data-dir', place.dataDir])
  expect(JSON.parse(stdout)).toMatchObject({ apiUrl, queueUrl })
  expect(await runHomeport(['keys', 'list', '--json', '--data-dir', place.dataDir])).toMatchObject({ code: 0 })
})

it('the command line lists keys, teams and the audit log', async () => {
  const { api_key } = await json('keys', 'create', 'ci', '--read-only')
  const readOnly = { HOMEPORT_API_KEY: api_key }
  expect(await cli(['teams', 'create', 'crew'], { env: readOnly })).toMatchObject({ code: 4 })
  await works('keys', 'delete', 'ci', '--yes')
  expect(await works('audit', '--count', '2')).toMatch(/Delete API Key +key_.*\n.*Create API Key/)
})

it('the command line adds an alert channel, tests it, silences alerts and changes a rule', async () => {
  expect(await works('alerts', 'channels')).toContain('There are no channels')
  const url = 'http://127.0.0.1:9/alerts'
  const channel = await json('alerts', 'add', url, '--name', 'ops', '--slack', '--rules', 'budget,disk_full')
  expect(channel).toMatchObject({ url, format: 'slack', kinds: ['budget', 'disk_full'] })
  expect(await works('alerts', 'channels')).toContain(String(channel.channel_id))
  expect(await works('alerts', 'test', 'ops')).toMatch(/^published msg_/)
  const changed = {
    format: 'json',
    kinds: [],
    group_minutes: 60,
    send_resolved: false,
    enabled: false,
    hourly_limit: 30,
  }
  const flags = [...'--format json --all-rules --group-minutes 60 --no-resolved --off --name'.split(' '), 'on call']
  expect(await json('alerts', 'update', 'ops', ...flags)).toMatchObject({ ...changed, name: 'on call', url })
  expect(await works('alerts', 'update', 'on call', '--resolved', '--on')).toMatch(/resolved +yes\non +yes/)
  expect(await cli(['alerts', 'update', 'on call'])).toMatchObject({ code: 2 })
  await works('alerts', 'remove', 'on call', '--yes')
  const { silence_id } = await json('alerts', 'silence', '--rule', 'budget', '--for', '2h', '--reason', 'known')
  expect(await works('alerts', 'silences')).toMatch(/budget +all .*known/)
  await works('alerts', 'unsilence', String(silence_id))
  expect(await works('alerts', 'rule', 'budget', '--threshold', '50')).toMatch(/budget +yes +50 %/)
  expect(await works('alerts', 'rules')).toMatch(/dead_letter +yes/)
  // Messages of earlier tests may have become dead letters meanwhile.
  expect(await works('alerts', 'history')).toMatch(/There are no alerts|dead_letter/)
})

it.skipIf(!existsSync('/dev/full'))('fails when its result cannot be written', async () => {
  const full = await run('sh', ['-c', '"$@" > /dev/full', 'sh', process.execPath, MAIN_JS, 'completion', 'bash'])
  expect(full).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: .*ENOSPC.*\n$/) })
})

it('the command line resets lost credentials only while the server is stopped', async () => {
  const flags = placeFlags(homeport.place)
  const refused = await runHomeport(['credentials', 'reset', '--yes', ...flags])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('already uses the data directory') })
  await homeport.kill('SIGTERM')
  const { code, stdout } = await runHomeport(['credentials', 'reset', '--yes', ...flags])
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('has a new API key') })
  const file = readFileSync(join(homeport.place.dataDir, 'credentials.json'), 'utf8')
  expect(file).not.toContain(homeport.credentials.apiKey)
  const again = await startHomeport(homeport.place)
  expect((await again.api('GET', '/v2/auditlogs')).body).toMatchObject({ 0: { action_string: 'Reset Credentials' } })
})
