import { SimpleGrid, Text } from '@mantine/core'
import type { OfferedPlan } from '../../../../src/contract/console/console.js'
import { limitsOf } from './plan-limits.js'

/** The limits of a plan, in two columns. It consists of spans, so that it can be the description of a field. */
export function PlanLimits({ plan }: { plan: OfferedPlan }) {
  return (
    <SimpleGrid component="span" cols={{ base: 1, xs: 2 }} spacing="lg" verticalSpacing={2}>
      {limitsOf(plan).map(({ name, value }) => (
        <Text
          key={name}
          component="span"
          size="xs"
          style={{ display: 'flex', justifyContent: 'space-between', gap: 8 }}
        >
          <span>{name}</span>
          <span style={{ color: 'var(--mantine-color-text)', whiteSpace: 'nowrap' }}>{value}</span>
        </Text>
      ))}
    </SimpleGrid>
  )
}
