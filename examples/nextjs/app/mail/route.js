import { Receiver } from '@upstash/qstash'
import { clients } from '../../lib/clients.js'

export async function POST(request) {
  const receiver = new Receiver({
    currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
    nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
  })
  const body = await request.text()
  const signature = request.headers.get('upstash-signature') ?? ''
  const isGenuine = await receiver.verify({ signature, body }).catch(() => false)
  if (!isGenuine) return new Response('wrong signature', { status: 401 })
  await clients().redis.rpush('sent', JSON.parse(body).to)
  return new Response('sent')
}
