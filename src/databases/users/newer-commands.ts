import type { EngineCapability } from '../../fleet/index.js'

/** What shows that an engine is new enough for every command but those of JSON. */
const NEWEST: EngineCapability = 'string-compare-and-set'

/** Whether an engine with these capabilities has a command that not every supported engine has. */
export function newerCommands(capabilities: readonly EngineCapability[]): (name: string) => boolean {
  return (name) => {
    if (name.startsWith('JSON.')) return capabilities.includes('json')
    if (name === 'WAITAOF') return capabilities.includes('waitaof')
    const isOfFields = /^H(P?EXPIRE(AT|TIME)?|PERSIST|P?TTL)$/.test(name)
    return capabilities.includes(NEWEST) || (isOfFields && capabilities.includes('hash-field-ttl'))
  }
}
