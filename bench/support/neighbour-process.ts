/** Disturbs a server on request, in a separate process, so that the measuring process is not slowed down. */
import { disturb, type Neighbour } from './neighbour.js'

let isOver = false

process.on('message', (message: Neighbour | 'stop') => {
  isOver = message === 'stop'
  if (message !== 'stop') void disturb(message, () => isOver).then((times) => process.send?.(times))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
