// A workflow endpoint on nothing but Node: two steps with a sleep between them.
// Needs QSTASH_URL and QSTASH_TOKEN (`eval "$(npx homeport env)"`), and serves on port 3000.
import { createServer } from 'node:http'
import { serve } from '@upstash/workflow'

const port = Number(process.env.PORT ?? 3000)

const { handler } = serve(async (context) => {
  const { name } = context.requestPayload
  const greeting = await context.run('compose', () => `Hello, ${name}!`)
  await context.sleep('wait a little', context.requestPayload.seconds ?? 1)
  return await context.run('deliver', () => {
    console.log(greeting)
    return { delivered: greeting }
  })
})

const server = createServer(async (incoming, outgoing) => {
  const chunks = []
  for await (const chunk of incoming) chunks.push(chunk)
  const url = `http://localhost:${port}${incoming.url}`
  const request = new Request(url, { method: incoming.method, headers: incoming.headers, body: Buffer.concat(chunks) })
  const response = await handler(request)
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
})
server.listen(port, '127.0.0.1', () => console.log(`workflow endpoint on http://localhost:${port}/greeting`))
