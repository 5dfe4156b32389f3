// A welcome mail three days after the sign-up, as a Cloudflare worker. See ../../README.md.
import { Client, Receiver } from '@upstash/qstash'
import { Redis } from '@upstash/redis/cloudflare'
import { Client as WorkflowClient } from '@upstash/workflow'
import { serve } from '@upstash/workflow/cloudflare'

const routes = {
  'POST /signup': async (request, { env, url }) => {
    const { email } = await request.json()
    const workflows = new WorkflowClient({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN })
    return Response.json(await workflows.trigger({ url: `${url}/welcome`, body: { email } }))
  },

  'POST /welcome': (request, { env, url, context }) => {
    const redis = Redis.fromEnv(env)
    const queue = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN })
    const { fetch } = serve(async (run) => {
      const { email } = run.requestPayload
      await run.run('store user', () => redis.sadd('users', email))
      await run.sleep('three days', '3d')
      await run.run('send mail', () => queue.publishJSON({ url: `${url}/mail`, body: { to: email } }))
    })
    return fetch(request, env, context)
  },

  'POST /mail': async (request, { env }) => {
    const receiver = new Receiver({
      currentSigningKey: env.QSTASH_CURRENT_SIGNING_KEY,
      nextSigningKey: env.QSTASH_NEXT_SIGNING_KEY,
    })
    const body = await request.text()
    const signature = request.headers.get('upstash-signature') ?? ''
    const isGenuine = await receiver.verify({ signature, body }).catch(() => false)
    if (!isGenuine) return new Response('wrong signature', { status: 401 })
    await Redis.fromEnv(env).rpush('sent', JSON.parse(body).to)
    return new Response('sent')
  },

  'GET /sent': async (_, { env }) => Response.json(await Redis.fromEnv(env).lrange('sent', 0, -1)),
}

export default {
  async fetch(request, env, context) {
    const { origin, pathname } = new URL(request.url)
    const route = routes[`${request.method} ${pathname}`]
    if (!route) return new Response('not found', { status: 404 })
    return await route(request, { env, context, url: env.APP_URL ?? origin })
  },
}
