import { clients } from '../../lib/clients.js'

export async function POST(request) {
  const { email } = await request.json()
  const { workflows, url } = clients()
  return Response.json(await workflows.trigger({ url: `${url}/welcome`, body: { email } }))
}
