//! Device Management and Primary Context Management: `cuDevice*`.
