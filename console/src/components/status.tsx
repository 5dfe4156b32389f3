import { Group, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Tone } from '../../../src/contract/words/states.js'
import classes from './status.module.css'

export type { Tone } from '../../../src/contract/words/states.js'

/** A state as text with a coloured dot. The text is needed because many people cannot distinguish the colours. */
export function Status({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <Group gap={7} wrap="nowrap" component="span" className={classes.status ?? ''}>
      <span className={classes.dot} data-tone={tone} aria-hidden />
      <Text component="span" size="sm" className="truncate">
        {children}
      </Text>
    </Group>
  )
}
