import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { makeAuthority } from '../../certificates/index.js'
import { createLogger } from '../../telemetry/index.js'
import { asClientSocket } from '../client/client-socket.js'
import { TlsRefusal } from './tls-refusal.js'

const connectionOf = (port: number) => {
  const address = { ip: '192.0.2.1', port }
  return asClientSocket(new PassThrough(), address, address)
}

it('a client gets its refusal although many clients before left without theirs', async () => {
  const current = await makeAuthority(Date.now(), 'test')
  const certificates = { current, onChange: () => () => undefined }
  const refusal = new TlsRefusal({ certificates, logger: createLogger({ level: 'silent' }) })
  const gone = Array.from({ length: 300 }, (_, port) => connectionOf(port).destroy())
  await Promise.all(gone.map((connection) => once(connection, 'close')))
  for (const connection of gone) refusal.refuse(connection, new Error('away'))
  const client = connectionOf(300)
  refusal.refuse(client, new Error('away'))
  expect(client.destroyed).toBe(false)
  client.destroy()
})
