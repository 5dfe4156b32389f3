import IconAnchor from 'icon:anchor'
import { Group, Text } from '@mantine/core'

/** The name and logo of the product. */
export function Brand() {
  return (
    <Group gap={8} wrap="nowrap" component="span">
      <IconAnchor size={22} stroke={2} color="var(--hp-busy)" aria-hidden />
      <Text component="span" className="brand-name" fw={700} size="lg" lh={1} style={{ whiteSpace: 'nowrap' }}>
        Homeport
      </Text>
    </Group>
  )
}
