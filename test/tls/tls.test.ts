import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { placeFlags, type RunningHomeport, run, runHomeport, startHomeport, tempDir } from '../support/index.js'

interface Made {
  readonly port: number
  readonly password: string
  readonly tls: boolean
}

describe('a database that is created with tls', () => {
  let homeport: RunningHomeport
  let database: Made
  let authority: string

  beforeAll(async () => {
    homeport = await startHomeport()
    const body = { database_name: 'secure', platform: 'aws', primary_region: 'us-east-1', tls: true }
    const answer = await homeport.api('POST', '/v2/redis/database', body)
    expect(answer.status).toBe(200)
    database = answer.body as Made
    authority = (await runHomeport(['ca', ...placeFlags(homeport.place)])).stdout
  })

  it('says so in its record', () => {
    expect(database.tls).toBe(true)
  })

  it('serves redis-cli that trusts the certificate of `homeport ca`', async () => {
    const file = join(tempDir(), 'homeport-ca.crt')
    writeFileSync(file, authority)
    const args = ['--tls', '--cacert', file, '-h', 'localhost', '-p', String(database.port), 'ping']
    const { stdout } = await run('redis-cli', args, { env: { REDISCLI_AUTH: database.password } })
    expect(stdout).toBe('PONG\n')
  })

  it('serves a client library that trusts it, and refuses one that does not', async () => {
    const connect = (ca: string | undefined) =>
      new Redis({
        host: 'localhost',
        port: database.port,
        password: database.password,
        tls: ca === undefined ? {} : { ca },
        lazyConnect: true,
        retryStrategy: () => null,
      })
    const trusting = connect(authority)
    expect(await trusting.set('key', 'value')).toBe('OK')
    trusting.disconnect()
    const stranger = connect(undefined)
    const errors: string[] = []
    stranger.on('error', (error) => errors.push(error.message))
    await expect(stranger.connect()).rejects.toThrow()
    expect(errors.join()).toMatch(/certificate/)
    stranger.disconnect()
  })

  it('is refused while the authority is broken: the log names the file, and databases without TLS are served', async () => {
    await homeport.kill('SIGTERM')
    const tls = join(homeport.place.dataDir, 'tls')
    writeFileSync(join(tls, 'ca.key'), 'no key')
    for (const file of ['server.key', 'server.crt']) rmSync(join(tls, file))
    const again = await startHomeport(homeport.place)
    const fields = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
    const refused = await again.api('POST', '/v2/redis/database', { ...fields, tls: true })
    expect(refused).toMatchObject({ status: 412 })
    const { status, body } = await again.api('POST', '/v2/redis/database', { ...fields, tls: false })
    expect(status).toBe(200)
    const { port, password } = body as Made
    const client = new Redis({ host: '127.0.0.1', port, password })
    onTestFinished(() => client.disconnect())
    expect(await client.set('k', 'v')).toBe('OK')
    expect(again.logs()).toContain('The local certificate authority cannot be used (tls/ca.key): it is damaged.')
  })
})
