import { serve } from '@upstash/workflow/nextjs'
import { clients } from '../../lib/clients.js'

// Made at the first request, too, because it reads the token of the queue.
let handler

export function POST(request) {
  handler ??= serve(async (context) => {
    const { email } = context.requestPayload
    const { redis, queue, url } = clients()
    await context.run('store user', () => redis.sadd('users', email))
    await context.sleep('three days', '3d')
    await context.run('send mail', () => queue.publishJSON({ url: `${url}/mail`, body: { to: email } }))
  }).POST
  return handler(request)
}
