import { expect, it } from 'vitest'
import { describeOnStore } from '../../src/store/testing/index.js'
import { newPlace, placeFlags, runHomeport, startHomeport } from '../support/index.js'

describeOnStore('postgres', 'a server', (_openStore, on) => {
  it('survives a kill with everything that it had acknowledged, and shares its store with no other server', async () => {
    const { location } = await on.newPlace()
    const env = { HOMEPORT_STORE: location }
    const first = await startHomeport({ env })
    const fields = { database_name: 'kept', platform: 'aws', primary_region: 'us-east-1' }
    const database = await first.api('POST', '/v2/redis/database', fields)
    const later = { 'Upstash-Delay': '1h' }
    const message = await first.queue('POST', '/v2/publish/https://example.com/later', { some: 'body' }, later)
    const run = await first.queue('POST', '/v2/trigger/https://example.com/workflow', undefined, later)
    expect([database, message, run].map(({ status }) => status)).toEqual([200, 200, 200])

    const other = await newPlace()
    const refused = await runHomeport(['start', ...placeFlags(other)], { env })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('Another Homeport server already uses this PostgreSQL database')

    await first.kill('SIGKILL')
    const second = await startHomeport({ ...first.place, env })
    const { database_id } = database.body as { database_id: string }
    const { messageId } = message.body as { messageId: string }
    expect(await second.api('GET', `/v2/redis/database/${database_id}`)).toMatchObject({
      status: 200,
      body: { database_id },
    })
    expect(await second.queue('GET', `/v2/messages/${messageId}`)).toMatchObject({ status: 200, body: { messageId } })
    expect(await second.queue('DELETE', '/v2/workflows/runs')).toMatchObject({ status: 200, body: { cancelled: 1 } })

    const { password } = new URL(location)
    for (const text of [first.logs(), second.logs(), refused.stdout, refused.stderr])
      expect(text).not.toContain(password)
  })
})
