import { define } from './entry.js'

/** Errors about the nodes of a cluster. */
export const nodeErrors = {
  node_not_found: define<{ name: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ name }) => `No node has the name ${JSON.stringify(name)}. GET /v2/nodes lists all.`,
  }),
  node_not_running: define<{ name: string; state: string }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ name, state }) =>
      `The node ${name} does not run (it is ${state}), so it has nothing to give up. Start it first.`,
  }),
  node_running: define<{ name: string }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ name }) => `The node ${name} runs. Drain and stop it first.`,
  }),
}
