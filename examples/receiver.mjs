// A destination for messages on nothing but Node: checks the signature and prints what arrives.
// Needs the signing keys (`eval "$(npx homeport env)"`), and serves on port 3001.
import { createServer } from 'node:http'
import { Receiver } from '@upstash/qstash'

const port = Number(process.env.PORT ?? 3001)
const receiver = new Receiver({
  currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
  nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
})

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString()
  const signature = request.headers['upstash-signature'] ?? ''
  const genuine = await receiver.verify({ signature, body }).catch(() => false)
  console.log(genuine ? `received ${body}` : 'refused a message with a wrong signature')
  response.writeHead(genuine ? 200 : 401).end()
})
server.listen(port, '127.0.0.1', () => console.log(`receiver on http://localhost:${port}`))
